//go:build noazure

// Package azure is empty under the build tag noazure.
package azure
