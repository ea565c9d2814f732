//go:build !noazure

// Package azure makes the requests of package remote to Azure Blob Storage,
// through Microsoft's client. It does not try again itself. Left out by the build tag noazure.
//
// Credentials come from an Access's properties, else from where Microsoft's
// client looks for them: environment, managed identity, command line tools.
package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/icefs/icefs/internal/source/remote"
)

// Properties by the names of Iceberg's implementations. Those that end in a dot
// are followed by an account, or by its host.
const (
	propEndpoint   = "adls.endpoint"
	propProtocol   = "adls.protocol"
	propAccount    = "adls.auth.shared-key.account.name"
	propKey        = "adls.auth.shared-key.account.key"
	propSAS        = "adls.sas-token."
	propConnection = "adls.connection-string."
	propManaged    = "adls.auth.managed-identity.enabled"
	propClient     = "adls.client-id"
	propAnonymous  = "adls.anonymous"
)

// Scheme returns the scheme of Azure's URLs, CONTAINER@ACCOUNT.HOST/KEY behind
// abfss:// and its relatives.
func Scheme() remote.Scheme {
	return remote.Scheme{Names: []string{"abfss", "abfs", "wasbs", "wasb"}, Split: split, Open: open}
}

func split(rest string) (bucket, key string, err error) {
	bucket, key, _ = strings.Cut(rest, "/")
	name, host, ok := strings.Cut(bucket, "@")
	if !ok || name == "" || host == "" || strings.ContainsAny(name, ":?#%\\ ") || strings.ContainsAny(host, "@?#%\\ ") {
		return "", "", errors.New("want CONTAINER@ACCOUNT.dfs.core.windows.net")
	}
	return bucket, key, nil
}

type bucket struct {
	client   *container.Client
	endpoint string
}

var _ remote.Bucket = (*bucket)(nil)

func open(_ context.Context, name string, p map[string]string) (remote.Bucket, error) {
	b, err := openContainer(name, p)
	if err != nil {
		return nil, remote.Denied(fmt.Errorf("Azure: %w", err))
	}
	return b, nil
}

// serviceURL is the URL of an account's blobs: those of a host for Data Lake are
// served by the one for blobs as well. An endpoint is a domain, or a whole URL.
func serviceURL(host string, p map[string]string) string {
	protocol := p[propProtocol]
	if protocol == "" {
		protocol = "https"
	}
	account, domain, _ := strings.Cut(host, ".")
	switch endpoint := p[propEndpoint]; {
	case strings.Contains(endpoint, "://"):
		return strings.TrimSuffix(endpoint, "/")
	case endpoint != "":
		domain = endpoint
	case domain == "":
		domain = "blob.core.windows.net"
	}
	if rest, ok := strings.CutPrefix(domain, "dfs."); ok {
		domain = "blob." + rest
	}
	return protocol + "://" + account + "." + domain
}

func openContainer(bucketName string, p map[string]string) (*bucket, error) {
	name, host, _ := strings.Cut(bucketName, "@")
	account, _, _ := strings.Cut(host, ".")
	service := serviceURL(host, p)
	at := service + "/" + url.PathEscape(name)
	options := &container.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
	b := &bucket{}
	either := func(prop string) string {
		if v := p[prop+host]; v != "" {
			return v
		}
		return p[prop+account]
	}
	anonymous, _ := strconv.ParseBool(p[propAnonymous])
	managed, _ := strconv.ParseBool(p[propManaged])
	var err error
	switch sas, connection := either(propSAS), either(propConnection); {
	case p[propAccount] != "":
		var key *azblob.SharedKeyCredential
		if key, err = azblob.NewSharedKeyCredential(p[propAccount], p[propKey]); err != nil {
			return nil, errors.New("the account's key cannot be used")
		}
		b.client, err = container.NewClientWithSharedKeyCredential(at, key, options)
	case sas != "":
		b.client, err = container.NewClientWithNoCredential(at+"?"+strings.TrimPrefix(sas, "?"), options)
	case connection != "":
		if b.client, err = container.NewClientFromConnectionString(connection, name, options); err != nil {
			return nil, errors.New("the connection string cannot be used")
		}
	case anonymous:
		b.client, err = container.NewClientWithNoCredential(at, options)
	default:
		var credential azcore.TokenCredential
		if credential, err = identity(managed, p[propClient]); err != nil {
			return nil, fmt.Errorf("there are no credentials (%s=true does without)", propAnonymous)
		}
		b.client, err = container.NewClient(at, credential, options)
	}
	if err != nil {
		return nil, err
	}
	// A connection string may say where as well. A token is behind the question mark.
	where, _, _ := strings.Cut(b.client.URL(), "?")
	b.endpoint = "azure:" + strings.TrimSuffix(where, "/"+url.PathEscape(name))
	return b, nil
}

// identity is the environment's.
func identity(managed bool, client string) (azcore.TokenCredential, error) {
	if !managed {
		return azidentity.NewDefaultAzureCredential(nil)
	}
	options := &azidentity.ManagedIdentityCredentialOptions{}
	if client != "" {
		options.ID = azidentity.ClientID(client)
	}
	return azidentity.NewManagedIdentityCredential(options)
}

// Endpoint implements remote.Bucket.
func (b *bucket) Endpoint() string { return b.endpoint }

// Get implements remote.Bucket. Azure has no ranges from the end: the size is
// asked for first.
func (b *bucket) Get(ctx context.Context, r remote.Request) (*remote.Reply, error) {
	if r.Off < 0 {
		info, err := b.Head(ctx, r.Key)
		if err != nil {
			return nil, err
		}
		if info.Size == 0 {
			return nil, &remote.StatusError{Code: http.StatusRequestedRangeNotSatisfiable}
		}
		r.Off, r.Match = max(info.Size+r.Off, 0), info.Version
		r.Len = info.Size - r.Off
	}
	options := &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: r.Off, Count: r.Len}}
	if r.Match != "" {
		tag := azcore.ETag(r.Match)
		options.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &tag}}
	}
	out, err := b.client.NewBlobClient(r.Key).DownloadStream(ctx, options)
	if err != nil {
		return nil, failure(err)
	}
	if value(out.ETag) == "" {
		out.Body.Close()
		return nil, remote.ErrNoAnswer
	}
	reply := &remote.Reply{Body: out.Body, Len: value(out.ContentLength), Info: remote.Info{Version: string(value(out.ETag))}}
	reply.Size = reply.Len
	if out.ContentRange != nil {
		if reply.Off, reply.Len, reply.Size, err = remote.ParseContentRange(*out.ContentRange); err != nil {
			out.Body.Close()
			return nil, err
		}
	}
	return reply, nil
}

// Head implements remote.Bucket.
func (b *bucket) Head(ctx context.Context, key string) (remote.Info, error) {
	out, err := b.client.NewBlobClient(key).GetProperties(ctx, nil)
	if err != nil {
		return remote.Info{}, failure(err)
	}
	if value(out.ETag) == "" {
		return remote.Info{}, remote.ErrNoAnswer
	}
	return remote.Info{Size: value(out.ContentLength), Version: string(value(out.ETag))}, nil
}

// List implements remote.Bucket.
func (b *bucket) List(ctx context.Context, prefix, token string) (*remote.Page, error) {
	options := &container.ListBlobsHierarchyOptions{Prefix: &prefix}
	if token != "" {
		options.Marker = &token
	}
	out, err := b.client.NewListBlobsHierarchyPager("/", options).NextPage(ctx)
	if err != nil {
		return nil, failure(err)
	}
	if out.Segment == nil {
		return nil, remote.ErrNoAnswer // the client takes no body for an empty folder
	}
	page := &remote.Page{Next: value(out.NextMarker)}
	for _, p := range out.Segment.BlobPrefixes {
		page.Folders = append(page.Folders, strings.TrimSuffix(strings.TrimPrefix(value(p.Name), prefix), "/"))
	}
	for _, o := range out.Segment.BlobItems {
		page.Objects = append(page.Objects, strings.TrimPrefix(value(o.Name), prefix))
	}
	return page, nil
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// failure turns the client's errors into what package remote tells apart; its own
// text has the request's URL, which may hold a token.
func failure(err error) error {
	var response *azcore.ResponseError
	var auth *azidentity.AuthenticationFailedError
	var of *url.Error
	switch {
	case errors.As(err, &auth):
		return remote.Denied(errors.New("Azure: there is no token for the identity"))
	case errors.As(err, &response):
		return &remote.StatusError{Code: response.StatusCode, Reason: response.ErrorCode}
	case errors.As(err, &of):
		return of.Err
	}
	return err
}
