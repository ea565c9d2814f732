//go:build nohive

package warehouse

import (
	"context"
	"fmt"
)

func openHive(context.Context, map[string]string, *env) (remote, error) {
	return nil, fmt.Errorf("%w: this icefs was built without the Hive metastore (tag nohive)", ErrUnsupportedSource)
}
