package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/icefs/icefs/internal/web"
)

// nothing is the server that was not asked for.
type nothing struct{}

func (nothing) Close() error { return nil }

// serveMetrics serves /metrics on --metrics-addr, and /debug/pprof/ if that is a
// loopback address: a profile takes processor time. Closing the result ends it.
func (s *session) serveMetrics() (io.Closer, error) {
	addr := s.opt.watching.metricsAddr
	if addr == "" {
		return nothing{}, nil
	}
	l, err := listen(addr)
	if err != nil {
		return nil, fmt.Errorf("--metrics-addr: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	if isLoopback(l.Addr()) {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	} else {
		s.log.Warn("metrics can be read from other machines, without a password; there is no pprof", "address", l.Addr().String())
	}
	server := web.NewServer(web.GuardHost(mux, nil), s.log)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("metrics are no longer served", "cause", err)
		}
	}()
	s.log.Info("serving metrics", "url", "http://"+l.Addr().String()+"/metrics")
	return server, nil
}

// listen opens a TCP address. One without a host, or a port alone, is on the
// loopback address: what listens for others has to be asked for.
func listen(addr string) (net.Listener, error) {
	if !strings.Contains(addr, ":") {
		addr = ":" + addr
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
