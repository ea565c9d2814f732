//go:build nogcs

package main

import "github.com/icefs/icefs/internal/source/remote"

func gcsSchemes() []remote.Scheme {
	return []remote.Scheme{remote.LeftOut("Google Cloud Storage", "nogcs", "gs")}
}
