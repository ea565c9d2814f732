//go:build noazure

package main

import "github.com/icefs/icefs/internal/source/remote"

func azureSchemes() []remote.Scheme {
	return []remote.Scheme{remote.LeftOut("Azure Blob Storage", "noazure", "abfss", "abfs", "wasbs", "wasb")}
}
