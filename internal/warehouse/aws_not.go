//go:build noglue

package warehouse

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

func openGlue(context.Context, map[string]string, *env) (remote, error) {
	return nil, fmt.Errorf("%w: this icefs was built without AWS Glue (tag noglue)", ErrUnsupportedSource)
}

func newSigner(props map[string]string) (func(*http.Request) error, error) {
	if strings.EqualFold(props[propSigV4], "true") {
		return nil, fmt.Errorf("%w: this icefs was built without AWS signatures (tag noglue)", ErrUnsupportedSource)
	}
	return nil, nil
}
