// Package s3 makes the requests of package remote to Amazon S3 and stores that
// speak its protocol, through the AWS SDK. It does not try again itself.
//
// Credentials come from an Access's properties, else from where the SDK looks
// for them: environment, shared configuration and credentials files (profiles,
// SSO, roles), the instance. They stay in the SDK's client.
package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/icefs/icefs/internal/source/remote"
)

// Scheme returns the scheme of s3:// URLs, and of Hadoop's s3a:// and s3n://.
// Its buckets share connections.
func Scheme() remote.Scheme {
	o := &opener{newClient()}
	return remote.Scheme{Names: []string{"s3", "s3a", "s3n"}, Split: remote.SplitBucket("s3"), Open: o.open}
}

// bucket is a bucket of S3.
type bucket struct {
	client   *s3.Client
	creds    aws.CredentialsProvider // nil = requests are not signed
	name     string
	endpoint string
}

var _ remote.Bucket = (*bucket)(nil)

// Endpoint implements remote.Bucket.
func (b *bucket) Endpoint() string { return b.endpoint }

// Get implements remote.Bucket.
func (b *bucket) Get(ctx context.Context, r remote.Request) (*remote.Reply, error) {
	if err := b.credentials(ctx); err != nil {
		return nil, err
	}
	in := &s3.GetObjectInput{Bucket: &b.name, Key: &r.Key}
	if r.Off < 0 {
		in.Range = aws.String(fmt.Sprintf("bytes=-%d", -r.Off))
	} else {
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", r.Off, r.Off+r.Len-1))
	}
	if isTag(r.Match) {
		in.IfMatch = &r.Match
	}
	out, err := b.client.GetObject(ctx, in)
	if err != nil {
		return nil, failure(err)
	}
	reply := &remote.Reply{Body: out.Body, Len: aws.ToInt64(out.ContentLength)}
	if reply.Version = version(out.ETag, out.LastModified); reply.Version == "" {
		out.Body.Close()
		return nil, remote.ErrNoAnswer
	}
	if reply.Size = reply.Len; out.ContentRange != nil {
		if reply.Off, reply.Len, reply.Size, err = remote.ParseContentRange(*out.ContentRange); err != nil {
			out.Body.Close()
			return nil, err
		}
	}
	return reply, nil
}

// Head implements remote.Bucket.
func (b *bucket) Head(ctx context.Context, key string) (remote.Info, error) {
	if err := b.credentials(ctx); err != nil {
		return remote.Info{}, err
	}
	out, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &key})
	if err != nil {
		return remote.Info{}, failure(err)
	}
	info := remote.Info{Size: aws.ToInt64(out.ContentLength), Version: version(out.ETag, out.LastModified)}
	if info.Version == "" {
		return remote.Info{}, remote.ErrNoAnswer
	}
	return info, nil
}

// List implements remote.Bucket.
func (b *bucket) List(ctx context.Context, prefix, token string) (*remote.Page, error) {
	if err := b.credentials(ctx); err != nil {
		return nil, err
	}
	in := &s3.ListObjectsV2Input{
		Bucket: &b.name, Prefix: &prefix, Delimiter: aws.String("/"), EncodingType: types.EncodingTypeUrl,
	}
	if token != "" {
		in.ContinuationToken = &token
	}
	out, err := b.client.ListObjectsV2(ctx, in)
	if err != nil {
		return nil, failure(err)
	}
	if out.Name == nil && out.IsTruncated == nil && out.KeyCount == nil && len(out.Contents)+len(out.CommonPrefixes) == 0 {
		return nil, remote.ErrNoAnswer // the SDK takes no body for an empty folder
	}
	plain := func(s *string) string {
		if out.EncodingType == types.EncodingTypeUrl {
			if decoded, err := url.QueryUnescape(aws.ToString(s)); err == nil {
				return decoded
			}
		}
		return aws.ToString(s)
	}
	page := &remote.Page{}
	for _, p := range out.CommonPrefixes {
		if name, ok := strings.CutPrefix(plain(p.Prefix), prefix); ok {
			page.Folders = append(page.Folders, strings.TrimSuffix(name, "/"))
		}
	}
	for _, o := range out.Contents {
		if name, ok := strings.CutPrefix(plain(o.Key), prefix); ok {
			page.Objects = append(page.Objects, name)
		}
	}
	if aws.ToBool(out.IsTruncated) {
		page.Next = aws.ToString(out.NextContinuationToken)
	}
	return page, nil
}

// version is an object's ETag, or its time where a store gives none.
func version(tag *string, modified *time.Time) string {
	if tag != nil && *tag != "" {
		return *tag
	}
	if modified != nil {
		return "modified " + modified.UTC().Format(time.RFC3339)
	}
	return ""
}

// isTag reports whether a version can be asked for.
func isTag(version string) bool { return version != "" && !strings.HasPrefix(version, "modified ") }

// credentials fails for good if there are none: without it the SDK's error could
// not be told from one of the network.
func (b *bucket) credentials(ctx context.Context) error {
	if b.creds == nil {
		return nil
	}
	if _, err := b.creds.Retrieve(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return remote.Denied(fmt.Errorf("there are no credentials for S3 (environment, profile; --s3-anonymous does without): %w", plainError(err)))
	}
	return nil
}

// failure turns the SDK's error into what package remote tells apart. The SDK's
// own text has the request's URL in it.
func failure(err error) error {
	var response *smithyhttp.ResponseError
	if !errors.As(err, &response) || response.HTTPStatusCode() < 300 {
		return plainError(err)
	}
	status := &remote.StatusError{Code: response.HTTPStatusCode()}
	var api smithy.APIError
	if errors.As(err, &api) {
		status.Reason = api.ErrorCode()
	}
	if region := response.HTTPResponse().Header.Get("X-Amz-Bucket-Region"); status.Code == http.StatusMovedPermanently && region != "" {
		status.Reason = "the bucket is in region " + strconv.Quote(region)
	}
	return status
}

// plainError leaves the URL of a request out of an error.
func plainError(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
