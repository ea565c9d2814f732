package s3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/aws/smithy-go/logging"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/source/remote"
)

// Properties by the names of Iceberg's implementations, which differ in some.
const (
	propEndpoint  = "s3.endpoint"
	propRegion    = "s3.region"
	propKey       = "s3.access-key-id"
	propSecret    = "s3.secret-access-key"
	propToken     = "s3.session-token"
	propPathStyle = "s3.path-style-access"
	propVirtual   = "s3.force-virtual-addressing"
	propAnonymous = "s3.anonymous"
	propProfile   = "s3.profile-name"
	propRole      = "s3.role-arn"
	propSession   = "s3.role-session-name"
	propProxy     = "s3.proxy-uri"
	propSigning   = "s3.remote-signing-enabled"
	propDialTime  = "s3.connect-timeout"
)

// spellings are further names of a property, and what it is called here.
func spellings() map[string][]string {
	return map[string][]string{
		propRegion:    {"client.region"},
		propProfile:   {"client.profile-name"},
		propKey:       {"client.access-key-id"},
		propSecret:    {"client.secret-access-key"},
		propToken:     {"client.session-token"},
		propRole:      {"client.role-arn"},
		propAnonymous: {"s3.anonymous-access"},
	}
}

// settings are the properties of a bucket.
type settings map[string]string

func (s settings) text(name string) string {
	if v := s[name]; v != "" {
		return v
	}
	for _, other := range spellings()[name] {
		if v := s[other]; v != "" {
			return v
		}
	}
	return ""
}

// flag is a property that is true or false; set tells whether it is there.
func (s settings) flag(name string) (value, set bool, err error) {
	text := s.text(name)
	if text == "" {
		return false, false, nil
	}
	if value, err = strconv.ParseBool(strings.ToLower(text)); err != nil {
		return false, false, fmt.Errorf("%s is %q: want true or false", name, text)
	}
	return value, true, nil
}

// opener opens buckets over shared connections.
type opener struct {
	client *awshttp.BuildableClient
}

// Times of a connection.
const (
	dialTime = 5 * time.Second
	keptIdle = 64 // connections to one store
)

// newClient is the SDK's client, which does not follow redirects and takes
// AWS_CA_BUNDLE and proxies from the environment.
func newClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTime }).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, keptIdle
			t.DisableCompression = true // ranges are of the bytes as stored
		})
}

// open implements remote.Scheme.Open.
func (o *opener) open(ctx context.Context, name string, properties map[string]string) (remote.Bucket, error) {
	p := settings(properties)
	b, err := o.openBucket(ctx, name, p)
	if err != nil && ctx.Err() == nil && !errors.Is(err, source.ErrUnsupported) {
		return nil, remote.Denied(fmt.Errorf("S3: %w", err))
	}
	return b, err
}

func (o *opener) openBucket(ctx context.Context, name string, p settings) (remote.Bucket, error) {
	anonymous, _, err := p.flag(propAnonymous)
	if err != nil {
		return nil, err
	}
	client, err := o.clientOf(p)
	if err != nil {
		return nil, err
	}
	cfg, err := o.config(ctx, client, p, anonymous)
	if err != nil {
		return nil, err
	}
	endpoint := p.endpoint(cfg)
	pathStyle, err := p.pathStyle(endpoint != "")
	if err != nil {
		return nil, err
	}
	if endpoint == "" && cfg.Region == "" {
		if cfg.Region, err = bucketRegion(ctx, cfg.HTTPClient, "https://s3.us-east-1.amazonaws.com", name); err != nil {
			return nil, err
		}
	}
	b := &bucket{name: name, endpoint: "s3:" + endpoint, creds: cfg.Credentials}
	if cfg.Region == "" {
		cfg.Region = "us-east-1" // what stores of other makers take
	}
	if anonymous {
		b.creds = nil
	}
	b.client = s3.NewFromConfig(cfg, func(so *s3.Options) {
		if endpoint != "" {
			so.BaseEndpoint = aws.String(endpoint)
		}
		so.UsePathStyle = pathStyle
		so.Retryer = aws.NopRetryer{}
		so.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		so.DisableLogOutputChecksumValidationSkipped = true
	})
	return b, nil
}

// clientOf is the HTTP client: the shared one, unless a property asks for another.
func (o *opener) clientOf(p settings) (*awshttp.BuildableClient, error) {
	client := o.client
	if proxy := p.text(propProxy); proxy != "" {
		u, err := url.Parse(proxy)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("%s is no URL", propProxy)
		}
		client = client.WithTransportOptions(func(t *http.Transport) { t.Proxy = http.ProxyURL(u) })
	}
	if text := p.text(propDialTime); text != "" {
		d, err := time.ParseDuration(text)
		if seconds, numErr := strconv.ParseFloat(text, 64); numErr == nil {
			d, err = time.Duration(seconds*float64(time.Second)), nil
		}
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("%s is %q: want seconds", propDialTime, text)
		}
		client = client.WithDialerOptions(func(dialer *net.Dialer) { dialer.Timeout = d })
	}
	return client, nil
}

// config is the SDK's configuration: what it finds in the environment, and the
// properties over it.
func (o *opener) config(ctx context.Context, client *awshttp.BuildableClient, p settings, anonymous bool) (aws.Config, error) {
	key, secret := p.text(propKey), p.text(propSecret)
	if signing, _, err := p.flag(propSigning); err != nil {
		return aws.Config{}, err
	} else if signing && key == "" && !anonymous {
		return aws.Config{}, fmt.Errorf("%w: %s", source.ErrUnsupported, propSigning)
	}
	options := []func(*config.LoadOptions) error{config.WithHTTPClient(client), config.WithLogger(logging.Nop{})}
	if region := p.text(propRegion); region != "" {
		options = append(options, config.WithRegion(region))
	}
	if profile := p.text(propProfile); profile != "" {
		options = append(options, config.WithSharedConfigProfile(profile))
	}
	switch {
	case anonymous:
		options = append(options, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	case (key == "") != (secret == ""):
		return aws.Config{}, fmt.Errorf("%s and %s come together", propKey, propSecret)
	case key != "":
		options = append(options, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(key, secret, p.text(propToken))))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return cfg, plainError(err)
	}
	if role := p.text(propRole); role != "" && !anonymous {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), role, func(a *stscreds.AssumeRoleOptions) {
			if session := p.text(propSession); session != "" {
				a.RoleSessionName = session
			}
		}))
	}
	return cfg, nil
}

// endpoint is the store's URL; empty for Amazon's.
func (p settings) endpoint(cfg aws.Config) string {
	if e := p.text(propEndpoint); e != "" {
		if !strings.Contains(e, "://") {
			e = "https://" + e
		}
		return strings.TrimSuffix(e, "/")
	}
	// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, endpoint_url in a profile
	return aws.ToString(s3.NewFromConfig(cfg).Options().BaseEndpoint)
}

// pathStyle tells whether the bucket is in a URL's path: by the properties, else
// for all stores but Amazon's, few of which have a name for each bucket.
func (p settings) pathStyle(others bool) (bool, error) {
	style, set, err := p.flag(propPathStyle)
	if err != nil || set {
		return style, err
	}
	virtual, set, err := p.flag(propVirtual)
	if err != nil || set {
		return !virtual, err
	}
	return others, nil
}

// bucketRegion asks where a bucket is; the answer says it also to those who may
// not read it.
func bucketRegion(ctx context.Context, client aws.HTTPClient, base, name string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, base+"/"+name, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("asking for the bucket's region: %w (--s3-region names it)", plainError(err))
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return "", fmt.Errorf("there is no bucket %s", name)
	}
	return resp.Header.Get("X-Amz-Bucket-Region"), nil
}
