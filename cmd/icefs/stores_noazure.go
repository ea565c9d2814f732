//go:build noazure

package main

import "github.com/icefs/icefs/internal/source/remote"

func azureSchemes() []remote.Scheme { return nil }
