//go:build nogcs

package main

import "github.com/icefs/icefs/internal/source/remote"

func gcsSchemes() []remote.Scheme { return nil }
