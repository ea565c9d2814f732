//go:build nogcs

// Package gcs is empty under the build tag nogcs.
package gcs
