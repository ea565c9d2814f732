package remote

import (
	"context"
	"fmt"
)

// LeftOut returns a scheme whose URLs are refused, with the build tag that left
// its store out of the program. names are the schemes of its URLs.
func LeftOut(store, tag string, names ...string) Scheme {
	why := fmt.Errorf("this icefs was built without %s (tag %s)", store, tag)
	return Scheme{
		Names: names,
		Split: func(string) (bucket, key string, err error) { return "", "", why },
		Open:  func(context.Context, string, map[string]string) (Bucket, error) { return nil, why },
	}
}
