//go:build !azure

// Package azure is empty without the build tag azure.
package azure
