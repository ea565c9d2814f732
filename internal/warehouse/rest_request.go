package warehouse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxPage bounds a page of a listing, and any other answer but a table, in bytes.
const maxPage = 64 << 20

// statusAuthExpired is how the REST API says that a token has run out.
const statusAuthExpired = 419

// get fetches JSON into target. header has further headers to send; the answer's
// are returned. An answer 304 leaves target alone and is errUnchanged.
func (c *restCatalog) get(ctx context.Context, where string, header http.Header, target any) (http.Header, error) {
	var got http.Header
	renewed := false
	err := c.retry.do(ctx, func(ctx context.Context) error {
		var err error
		got, err = c.try(ctx, where, header, target)
		if errors.Is(err, errToken) && !renewed && c.forgetToken() {
			renewed = true
			got, err = c.try(ctx, where, header, target)
		}
		return err
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		err = fmt.Errorf("catalog %s: %w", redactURL(where), err)
	}
	return got, err
}

var (
	// errUnchanged: what was asked for has the tag that was sent.
	errUnchanged = errors.New("not modified")
	// errToken: the server does not accept the token; with a new one it may.
	errToken = fmt.Errorf("%w: not authorized", ErrDenied)
)

func (c *restCatalog) try(ctx context.Context, where string, header http.Header, target any) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, err
	}
	for _, set := range []http.Header{c.headers, header} {
		for name, values := range set {
			req.Header[name] = values
		}
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "icefs")
	if err := c.authorize(req); err != nil {
		return nil, err
	}
	if c.sign != nil {
		if err := c.sign(req); err != nil {
			return nil, err
		}
	}
	rsp, err := c.client.Do(req)
	if err != nil {
		return nil, unavailable(err)
	}
	defer func() {
		io.Copy(io.Discard, io.LimitReader(rsp.Body, 64<<10)) // so that the connection can be used again
		rsp.Body.Close()
	}()
	if rsp.StatusCode != http.StatusOK {
		return nil, refusal(rsp)
	}
	return rsp.Header, decodeAnswer(rsp.Body, target)
}

// maxAnswer bounds an answer that holds a table's metadata: five times what one of
// 100,000 snapshots has.
const maxAnswer = 256 << 20

// decodeAnswer decodes JSON, or keeps it as it is if target is a *[]byte.
func decodeAnswer(body io.Reader, target any) error {
	limit := int64(maxPage)
	raw, whole := target.(*[]byte)
	if whole {
		limit = maxAnswer
	}
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return unavailable(err)
	case int64(len(b)) > limit:
		return fmt.Errorf("%w: an answer of over %d bytes", ErrUnsupported, limit)
	case whole:
		*raw = b
		return nil
	}
	if err := json.Unmarshal(b, target); err != nil {
		return fmt.Errorf("%w: not the JSON of a REST catalog: %w", ErrCorrupt, err)
	}
	return nil
}

// refusal turns an answer other than 200 into an error.
func refusal(rsp *http.Response) error {
	var said struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
		} `json:"error"`
	}
	b, _ := io.ReadAll(io.LimitReader(rsp.Body, 64<<10))
	_ = json.Unmarshal(b, &said) // not all errors come from the catalog itself
	text := rsp.Status
	if said.Error.Message != "" {
		text += ": " + firstLine(said.Error.Message)
	}
	switch code := rsp.StatusCode; {
	case code == http.StatusNotModified:
		return errUnchanged
	case code == http.StatusNotFound:
		return fmt.Errorf("%w: %s", ErrGone, text)
	case code == http.StatusUnauthorized, code == statusAuthExpired:
		return fmt.Errorf("%w: %s", errToken, text)
	case code == http.StatusForbidden:
		return fmt.Errorf("%w: %s", ErrDenied, text)
	case code == http.StatusTooManyRequests, code >= 500 && code != http.StatusNotImplemented:
		return retryLater{fmt.Errorf("%w: %s", ErrUnavailable, text), retryAfter(rsp.Header)}
	default:
		return fmt.Errorf("%w: %s", ErrUnsupportedSource, text)
	}
}

// firstLine shortens a message: servers append stack traces.
func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	const long = 500
	if len(s) > long {
		s = strings.ToValidUTF8(s[:long], "") + "…"
	}
	return s
}

// retryAfter is how long a server asks to be left alone.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 3600 {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return time.Until(at)
	}
	return 0
}

// pathOf is the address of a namespace's part of the API, or of one table.
func (c *restCatalog) pathOf(levels []string, more ...string) string {
	encoded := make([]string, len(levels))
	for i, level := range levels {
		encoded[i] = pathEscape(level)
	}
	where := c.base + "/namespaces/" + strings.Join(encoded, c.separator)
	for _, m := range more {
		where += "/" + pathEscape(m)
	}
	return where
}

// pathEscape escapes a name as one element of a path, dots of "." and ".." too.
func pathEscape(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}
