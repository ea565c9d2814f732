//go:build !gcs

// Package gcs is empty without the build tag gcs.
package gcs
