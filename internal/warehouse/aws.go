//go:build !noglue

package warehouse

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/aws-sdk-go-v2/service/glue/types"
)

// awsConfig is what the properties say about an account, prefix by prefix, and
// where they say nothing what AWS's own files and environment say.
func awsConfig(ctx context.Context, props map[string]string, prefixes ...string) (aws.Config, error) {
	first := func(suffix string) string {
		keys := make([]string, len(prefixes))
		for i, p := range prefixes {
			keys[i] = p + suffix
		}
		return firstOf(props, keys...)
	}
	var opts []func(*config.LoadOptions) error
	if region := first("region"); region != "" {
		opts = append(opts, config.WithRegion(region))
	}
	if profile := first("profile-name"); profile != "" {
		opts = append(opts, config.WithSharedConfigProfile(profile))
	}
	if id := first("access-key-id"); id != "" {
		creds := aws.Credentials{AccessKeyID: id, SecretAccessKey: first("secret-access-key"), SessionToken: first("session-token"), Source: "properties"}
		opts = append(opts, config.WithCredentialsProvider(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return creds, nil
		})))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return cfg, fmt.Errorf("AWS configuration: %w", err)
	}
	return cfg, nil
}

// emptyBodyHash is SHA-256 of no bytes, as AWS signs requests without a body.
const emptyBodyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// newSigner signs requests to a REST catalog in AWS (rest.sigv4-enabled).
func newSigner(props map[string]string) (func(*http.Request) error, error) {
	if !strings.EqualFold(props[propSigV4], "true") {
		return nil, nil
	}
	cfg, err := awsConfig(context.Background(), props, "rest.", "client.", "s3.")
	if err != nil {
		return nil, err
	}
	if region := props["rest.signing-region"]; region != "" {
		cfg.Region = region
	}
	service := firstOf(props, "rest.signing-name")
	if service == "" {
		service = "execute-api"
	}
	signer := v4.NewSigner()
	return func(req *http.Request) error {
		creds, err := cfg.Credentials.Retrieve(req.Context())
		if err != nil {
			return fmt.Errorf("%w: AWS credentials: %w", ErrDenied, err)
		}
		req.Header.Set("X-Amz-Content-Sha256", emptyBodyHash)
		return signer.SignHTTP(req.Context(), creds, req, emptyBodyHash, service, cfg.Region, time.Now())
	}, nil
}

// glueCatalog is the catalog of AWS Glue: databases are namespaces, and a table
// of ours has the parameter metadata_location.
type glueCatalog struct {
	client *glue.Client
	id     *string // of the account's catalog; nil = its own
	props  map[string]string
	retry  retry
}

var _ remote = (*glueCatalog)(nil)

func openGlue(ctx context.Context, props map[string]string, e *env) (remote, error) {
	cfg, err := awsConfig(ctx, props, "glue.", "client.")
	if err != nil {
		return nil, err
	}
	c := &glueCatalog{props: props, retry: e.retry()}
	c.client = glue.NewFromConfig(cfg, func(o *glue.Options) {
		if endpoint := props["glue.endpoint"]; endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
		o.RetryMaxAttempts = 1 // retry asks again
	})
	if id := props["glue.id"]; id != "" {
		c.id = aws.String(id)
	}
	_, err = c.namespaces(ctx, nil)
	return c, err
}

// ask puts a question to Glue until it is answered.
func (c *glueCatalog) ask(ctx context.Context, try func(context.Context) error) error {
	return c.retry.do(ctx, func(ctx context.Context) error {
		err := try(ctx)
		if err == nil {
			return nil
		}
		var missing *types.EntityNotFoundException
		var code interface{ ErrorCode() string }
		switch {
		case errors.As(err, &missing):
			return fmt.Errorf("%w: %w", ErrGone, err)
		case !errors.As(err, &code):
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		switch code.ErrorCode() {
		case "AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException", "MissingAuthenticationToken":
			return fmt.Errorf("%w: %w", ErrDenied, err)
		case "InvalidInputException", "ValidationException":
			return err
		}
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	})
}

// namespaces implements remote. Glue's databases have no levels.
func (c *glueCatalog) namespaces(ctx context.Context, parent []string) (names []string, err error) {
	if len(parent) > 0 {
		return nil, nil
	}
	pages := glue.NewGetDatabasesPaginator(c.client, &glue.GetDatabasesInput{CatalogId: c.id})
	for pages.HasMorePages() {
		var page *glue.GetDatabasesOutput
		if err := c.ask(ctx, func(ctx context.Context) (err error) { page, err = pages.NextPage(ctx); return }); err != nil {
			return nil, err
		}
		for _, db := range page.DatabaseList {
			names = append(names, aws.ToString(db.Name))
		}
	}
	return names, nil
}

// tables implements remote.
func (c *glueCatalog) tables(ctx context.Context, namespace []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if len(namespace) != 1 {
			return
		}
		pages := glue.NewGetTablesPaginator(c.client, &glue.GetTablesInput{CatalogId: c.id, DatabaseName: aws.String(namespace[0])})
		for pages.HasMorePages() {
			var page *glue.GetTablesOutput
			if err := c.ask(ctx, func(ctx context.Context) (err error) { page, err = pages.NextPage(ctx); return }); err != nil {
				yield("", err)
				return
			}
			for _, t := range page.TableList {
				if isIceberg(t.Parameters) && !yield(aws.ToString(t.Name), nil) {
					return
				}
			}
		}
	}
}

// table implements remote.
func (c *glueCatalog) table(ctx context.Context, namespace []string, name, _ string) (found, error) {
	if len(namespace) != 1 {
		return found{}, fmt.Errorf("%w: Glue's tables are in databases", ErrGone)
	}
	var got *glue.GetTableOutput
	err := c.ask(ctx, func(ctx context.Context) (err error) {
		got, err = c.client.GetTable(ctx, &glue.GetTableInput{CatalogId: c.id, DatabaseName: aws.String(namespace[0]), Name: aws.String(name)})
		return
	})
	switch {
	case err != nil:
		return found{}, err
	case got.Table == nil || !isIceberg(got.Table.Parameters):
		return found{}, fmt.Errorf("%w: not a table of Iceberg", ErrGone)
	}
	return found{location: got.Table.Parameters[paramLocation], access: c.props}, nil
}

// close implements remote.
func (c *glueCatalog) close() {}
