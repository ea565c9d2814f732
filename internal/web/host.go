package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// GuardHost refuses requests whose Host is a name other than localhost or one of
// names. Addresses pass: for a web site to read from here, its own name would
// have to lead here (DNS rebinding), and a browser then sends that name.
func GuardHost(next http.Handler, names []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hostAllowed(r.Host, names) {
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "This server does not answer to that host name: use its address, or allow the name with --allow-host.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostAllowed reports whether a Host header, with or without a port, is allowed.
func hostAllowed(host string, names []string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return host == "localhost" || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, host) })
}
