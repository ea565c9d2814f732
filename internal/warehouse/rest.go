package warehouse

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// Properties of REST catalogs, as pyiceberg and the Java implementation name
// them. Others are file-IO properties, or are ignored.
const (
	propURI          = "uri"
	propType         = "type"
	propWarehouse    = "warehouse"
	propPrefix       = "prefix"
	propToken        = "token"
	propCredential   = "credential"
	propScope        = "scope"
	propAudience     = "audience"
	propResource     = "resource"
	propOAuthURI     = "oauth2-server-uri"
	propOAuthURIOld  = "rest.authorization-url"
	propSeparator    = "namespace-separator"
	propPageSize     = "rest-page-size"
	propAuthType     = "auth.type"
	propCABundle     = "ssl.cabundle"
	propClientCert   = "ssl.client.cert"
	propClientKey    = "ssl.client.key"
	propHeaderPrefix = "header."
	propSigV4        = "rest.sigv4-enabled"
)

// defaultSeparator joins the levels of a namespace in a path of the REST API.
const defaultSeparator = "%1F"

// defaultPageSize is how many names a page of a listing is asked to hold: few
// enough that a slow server sends the first soon, enough that a catalog of
// 10,000 tables is listed in some dozens of requests.
const defaultPageSize = 250

// restCatalog is a catalog behind Iceberg's REST API. See
// docs/decisions/0013-catalog-clients.md for why the client is not iceberg-go's.
type restCatalog struct {
	base       string // of the API, up to the prefix, without a slash at the end
	separator  string // of namespace levels, percent-encoded
	pageSize   string
	properties map[string]string // after the server's defaults and overrides
	headers    http.Header
	client     *http.Client
	sign       func(*http.Request) error // nil = requests are not signed
	retry      retry

	mu     sync.Mutex         // guards below
	tokens oauth2.TokenSource // nil = no OAuth2
	fetch  func() oauth2.TokenSource
}

var _ remote = (*restCatalog)(nil)

// openREST asks the server for its configuration, which may change every
// property but the address: its defaults come before ours, its overrides after.
func openREST(ctx context.Context, props map[string]string, r retry) (*restCatalog, error) {
	c := &restCatalog{retry: r}
	uri := strings.TrimSuffix(props[propURI], "/")
	if err := checkHTTP(uri); err != nil {
		return nil, fmt.Errorf("%w: uri: %w", ErrUnsupportedSource, err)
	}
	if err := c.configure(uri, props); err != nil {
		return nil, err
	}
	where := uri + "/v1/config"
	if warehouse := props[propWarehouse]; warehouse != "" {
		where += "?" + url.Values{propWarehouse: {warehouse}}.Encode()
	}
	var config struct {
		Defaults  jsonStrings `json:"defaults"`
		Overrides jsonStrings `json:"overrides"`
	}
	if _, err := c.get(ctx, where, nil, &config); err != nil {
		if errors.Is(err, ErrGone) { // of the server's own paths, not of a table
			return nil, fmt.Errorf("%w: %s is no REST catalog, or has no warehouse %q", ErrUnsupportedSource, redactURL(uri), props[propWarehouse])
		}
		return nil, err
	}
	merged := map[string]string{}
	maps.Copy(merged, config.Defaults)
	maps.Copy(merged, props)
	maps.Copy(merged, config.Overrides)
	if other := strings.TrimSuffix(merged[propURI], "/"); other != uri {
		if err := checkHTTP(other); err != nil {
			return nil, fmt.Errorf("%w: the uri that the server names: %w", ErrUnsupportedSource, err)
		}
		uri = other
	}
	return c, c.configure(uri, merged)
}

// checkHTTP refuses what is no address of a server, and one with a password in
// it, which would be shown in messages.
func checkHTTP(uri string) error {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return errors.New("not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%s is not an http or https URL", u.Redacted())
	case u.User != nil:
		return errors.New("a user or password does not belong into the URL: use the properties credential, token or auth")
	}
	return nil
}

// configure sets the client up for an address and properties.
func (c *restCatalog) configure(uri string, props map[string]string) error {
	c.base, c.properties = uri+"/v1", props
	if prefix := strings.Trim(props[propPrefix], "/"); prefix != "" {
		c.base += "/" + prefix
	}
	if c.separator = props[propSeparator]; c.separator == "" {
		c.separator = defaultSeparator
	}
	if c.pageSize = props[propPageSize]; c.pageSize == "" {
		c.pageSize = fmt.Sprint(defaultPageSize)
	}
	c.headers = http.Header{"X-Iceberg-Access-Delegation": {"vended-credentials"}}
	for key, value := range props {
		if name, ok := strings.CutPrefix(key, propHeaderPrefix); ok {
			c.headers.Set(name, value)
		}
	}
	transport, err := restTransport(props)
	if err != nil {
		return err
	}
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
	c.client = &http.Client{Transport: transport, CheckRedirect: sameHost}
	if c.sign, err = newSigner(props); err != nil {
		return err
	}
	return c.configureAuth(uri, props)
}

// close implements remote.
func (c *restCatalog) close() { c.client.CloseIdleConnections() }

// sameHost follows redirects within a server only: headers may hold secrets
// that net/http does not know as such.
func sameHost(req *http.Request, via []*http.Request) error {
	if len(via) >= 5 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

// Patience with a server that takes connections but does not answer: shorter
// than --timeout, so that a lost request is sent again.
const (
	dialPatience   = 5 * time.Second
	headerPatience = 20 * time.Second
	maxConnections = 32
)

func restTransport(props map[string]string) (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = headerPatience
	t.TLSHandshakeTimeout = dialPatience
	t.MaxConnsPerHost, t.MaxIdleConnsPerHost = maxConnections, maxConnections
	ca, cert, key := props[propCABundle], props[propClientCert], props[propClientKey]
	if ca == "" && cert == "" {
		return t, nil
	}
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", propCABundle, err)
		}
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no certificate in %s", propCABundle, ca)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", propClientCert, err)
		}
		t.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

// configureAuth sets up what a request says about who sends it: a bearer token,
// OAuth2 client credentials, or a name and a password.
func (c *restCatalog) configureAuth(uri string, props map[string]string) error {
	c.tokens, c.fetch = nil, nil
	cfg := &clientcredentials.Config{AuthStyle: oauth2.AuthStyleInParams, EndpointParams: url.Values{}}
	switch kind := props[propAuthType]; kind {
	case "", "legacyoauth2":
		if props[propToken] != "" {
			c.headers.Set("Authorization", "Bearer "+props[propToken])
			return nil
		}
		if props[propCredential] == "" {
			return nil
		}
		id, secret, found := strings.Cut(props[propCredential], ":")
		if !found {
			id, secret = "", id
		}
		cfg.ClientID, cfg.ClientSecret = id, secret
		cfg.TokenURL = firstOf(props, propOAuthURI, propOAuthURIOld)
		if cfg.TokenURL == "" {
			cfg.TokenURL = uri + "/v1/oauth/tokens"
		}
		cfg.Scopes = []string{"catalog"}
	case "noop":
		return nil
	case "basic":
		pair := props["auth.basic.username"] + ":" + props["auth.basic.password"]
		c.headers.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
		return nil
	case "oauth2":
		cfg.ClientID, cfg.ClientSecret = props["auth.oauth2.client_id"], props["auth.oauth2.client_secret"]
		cfg.TokenURL = props["auth.oauth2.token_url"]
		if scope := props["auth.oauth2.scope"]; scope != "" {
			cfg.Scopes = []string{scope}
		}
	default:
		return fmt.Errorf("%w: %s %q (noop, basic, oauth2 and legacyoauth2 are)", ErrUnsupportedSource, propAuthType, kind)
	}
	if err := checkHTTP(cfg.TokenURL); err != nil {
		return fmt.Errorf("%w: the address of the OAuth2 server: %w", ErrUnsupportedSource, err)
	}
	if scope := props[propScope]; scope != "" {
		cfg.Scopes = []string{scope}
	}
	for _, key := range []string{propAudience, propResource} {
		if props[key] != "" {
			cfg.EndpointParams.Set(key, props[key])
		}
	}
	// TokenSource has no context of its own: the client's time limit ends it.
	client := &http.Client{Transport: c.client.Transport, Timeout: headerPatience}
	c.fetch = func() oauth2.TokenSource {
		return cfg.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, client))
	}
	c.tokens = c.fetch()
	return nil
}

// firstOf returns the first property that is set.
func firstOf(props map[string]string, keys ...string) string {
	for _, key := range keys {
		if props[key] != "" {
			return props[key]
		}
	}
	return ""
}

// authorize sets the header of a request that a token gives.
func (c *restCatalog) authorize(req *http.Request) error {
	c.mu.Lock()
	tokens := c.tokens
	c.mu.Unlock()
	if tokens == nil {
		return nil
	}
	token, err := tokens.Token()
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused):
		// Its text holds the answer's body, and that may hold anything.
		if code := refused.Response.StatusCode; code >= 500 || code == http.StatusTooManyRequests {
			return fmt.Errorf("%w: the OAuth2 server answers %s", ErrUnavailable, refused.Response.Status)
		}
		return fmt.Errorf("%w: the OAuth2 server refuses the credential: %s %s", ErrDenied, refused.ErrorCode, refused.ErrorDescription)
	case err != nil:
		return fmt.Errorf("%w: OAuth2 server: %w", ErrUnavailable, plainError(err))
	}
	req.Header.Set("Authorization", token.Type()+" "+token.AccessToken)
	return nil
}

// forgetToken drops a token that the server no longer accepts; false if there is
// no way to get another.
func (c *restCatalog) forgetToken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fetch == nil {
		return false
	}
	c.tokens = c.fetch()
	return true
}

// jsonStrings is a JSON object of strings. Other values are kept as they are
// written: some servers send numbers and booleans.
type jsonStrings map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (p *jsonStrings) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	*p = make(jsonStrings, len(raw))
	for key, value := range raw {
		var text string
		switch {
		case string(value) == "null":
			continue
		case json.Unmarshal(value, &text) == nil:
			(*p)[key] = text
		default:
			(*p)[key] = string(value)
		}
	}
	return nil
}

// redactURL returns a URL without what may be secret in it.
func redactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "(a URL)"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
