//go:build !nogcs

// Package gcs makes the requests of package remote to Google Cloud Storage,
// through Google's client. It does not try again itself. Left out by the build tag nogcs.
//
// Credentials come from an Access's properties, else they are Google's application
// default credentials.
package gcs

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"

	"github.com/icefs/icefs/internal/source/remote"
)

// Properties by the names of Iceberg's implementations.
const (
	propEndpoint  = "gcs.endpoint"
	propHost      = "gcs.service.host"
	propNoAuth    = "gcs.no-auth"
	propToken     = "gcs.oauth2.token"
	propExpires   = "gcs.oauth2.token-expires-at" // milliseconds
	propKeyPath   = "gcs.keypath"
	propJSONKey   = "gcs.jsonkey"
	propCredType  = "gcs.credtype"
	propProject   = "gcs.user-project"
	serviceKey    = "service_account"
	readOnlyScope = storage.ScopeReadOnly
)

// Scheme returns the scheme of gs:// URLs.
func Scheme() remote.Scheme {
	return remote.Scheme{Names: []string{"gs"}, Split: remote.SplitBucket("gs"), Open: open}
}

type bucket struct {
	handle   *storage.BucketHandle
	endpoint string
}

var _ remote.Bucket = (*bucket)(nil)

func open(ctx context.Context, name string, p map[string]string) (remote.Bucket, error) {
	endpoint := serviceURL(p)
	var options []option.ClientOption
	if endpoint != "" {
		options = append(options, option.WithEndpoint(endpoint))
	}
	auth, err := credentials(ctx, p)
	if err != nil {
		return nil, remote.Denied(fmt.Errorf("GCS: %w", err))
	}
	// The client outlives the request that opens it.
	client, err := storage.NewClient(context.WithoutCancel(ctx), append(options, auth)...)
	if err != nil {
		return nil, remote.Denied(fmt.Errorf("GCS: %w", err))
	}
	client.SetRetry(storage.WithPolicy(storage.RetryNever))
	handle := client.Bucket(name)
	if project := p[propProject]; project != "" {
		handle = handle.UserProject(project)
	}
	return &bucket{handle, "gs:" + endpoint}, nil
}

// serviceURL is where the store's JSON interface is, "" for Google's own. Iceberg's
// property has the host alone.
func serviceURL(p map[string]string) string {
	endpoint := p[propHost]
	if endpoint == "" {
		endpoint = p[propEndpoint]
	}
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" && strings.Trim(u.Path, "/") == "" {
		u.Path = "/storage/v1/"
		return u.String()
	}
	return endpoint
}

// credentials says as whom requests are made.
func credentials(ctx context.Context, p map[string]string) (option.ClientOption, error) {
	if none, err := strconv.ParseBool(p[propNoAuth]); err == nil && none {
		return option.WithoutAuthentication(), nil
	}
	if token := p[propToken]; token != "" {
		t := &oauth2.Token{AccessToken: token}
		if ms, err := strconv.ParseInt(p[propExpires], 10, 64); err == nil {
			t.Expiry = time.UnixMilli(ms)
		}
		return option.WithTokenSource(oauth2.StaticTokenSource(t)), nil
	}
	key := []byte(p[propJSONKey])
	if path := p[propKeyPath]; path != "" && len(key) == 0 {
		var err error
		if key, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("%s: %w", propKeyPath, err)
		}
	}
	if len(key) > 0 {
		kind := p[propCredType]
		if kind == "" {
			kind = serviceKey
		}
		creds, err := google.CredentialsFromJSONWithType(ctx, key, google.CredentialsType(kind), readOnlyScope)
		if err != nil {
			return nil, errors.New("the key cannot be used: set " + propCredType + " if it is not one of a service account")
		}
		return option.WithTokenSource(creds.TokenSource), nil
	}
	creds, err := google.FindDefaultCredentials(ctx, readOnlyScope)
	if err != nil {
		return nil, fmt.Errorf("there are no credentials (%s=true does without)", propNoAuth)
	}
	return option.WithTokenSource(creds.TokenSource), nil
}

// Endpoint implements remote.Bucket.
func (b *bucket) Endpoint() string { return b.endpoint }

// Get implements remote.Bucket. Objects stored compressed are read as stored.
func (b *bucket) Get(ctx context.Context, r remote.Request) (*remote.Reply, error) {
	object := b.handle.Object(r.Key).ReadCompressed(true)
	if r.Match != "" {
		generation, err := strconv.ParseInt(r.Match, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("internal error: version %q", r.Match)
		}
		object = object.If(storage.Conditions{GenerationMatch: generation})
	}
	n := r.Len
	if r.Off < 0 {
		n = -1
	}
	body, err := object.NewRangeReader(ctx, r.Off, n)
	if err != nil {
		return nil, failure(err)
	}
	if body.Attrs.Generation <= 0 {
		body.Close()
		return nil, remote.ErrNoAnswer
	}
	return &remote.Reply{
		Info: remote.Info{Size: body.Attrs.Size, Version: strconv.FormatInt(body.Attrs.Generation, 10)},
		Off:  body.Attrs.StartOffset, Len: body.Remain(), Body: body,
	}, nil
}

// Head implements remote.Bucket.
func (b *bucket) Head(ctx context.Context, key string) (remote.Info, error) {
	attrs, err := b.handle.Object(key).Attrs(ctx)
	if err != nil {
		return remote.Info{}, failure(err)
	}
	if attrs.Generation <= 0 {
		return remote.Info{}, remote.ErrNoAnswer
	}
	return remote.Info{Size: attrs.Size, Version: strconv.FormatInt(attrs.Generation, 10)}, nil
}

// listed is how many names a page of a listing has.
const listed = 1000

// List implements remote.Bucket.
func (b *bucket) List(ctx context.Context, prefix, token string) (*remote.Page, error) {
	query := &storage.Query{Prefix: prefix, Delimiter: "/"}
	if err := query.SetAttrSelection([]string{"Name"}); err != nil {
		return nil, err
	}
	var found []*storage.ObjectAttrs
	next, err := iterator.NewPager(b.handle.Objects(ctx, query), listed, token).NextPage(&found)
	if err != nil {
		return nil, failure(err)
	}
	page := &remote.Page{Next: next}
	for _, o := range found {
		if o.Prefix != "" {
			page.Folders = append(page.Folders, strings.TrimSuffix(strings.TrimPrefix(o.Prefix, prefix), "/"))
		} else {
			page.Objects = append(page.Objects, strings.TrimPrefix(o.Name, prefix))
		}
	}
	return page, nil
}

// failure turns the client's errors into what package remote tells apart.
func failure(err error) error {
	var api *googleapi.Error
	var token *oauth2.RetrieveError
	switch {
	case errors.Is(err, storage.ErrObjectNotExist), errors.Is(err, storage.ErrBucketNotExist):
		return &remote.StatusError{Code: 404}
	case errors.As(err, &api):
		status := &remote.StatusError{Code: api.Code}
		if len(api.Errors) > 0 {
			status.Reason = api.Errors[0].Reason
		}
		return status
	case errors.As(err, &token):
		return remote.Denied(fmt.Errorf("GCS: no token: %s", token.ErrorCode))
	}
	return err
}
