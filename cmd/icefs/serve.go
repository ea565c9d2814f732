package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/icefs/icefs/fs"
	"github.com/icefs/icefs/internal/web"
)

const serveHelp = sourceHelp + `
The tree is served at --addr until SIGINT or SIGTERM: files with ranges, folders as
pages for a browser. There is no password and no TLS. On an address other than the
loopback one (127.0.0.1, ::1) whoever reaches it can read every row; put a proxy
that asks for a password in front.
`

// defaultAddr is on the loopback address: nobody else is served unasked.
const defaultAddr = "127.0.0.1:8333"

// drainPatience is how long replies under way may take once a signal has come.
const drainPatience = 5 * time.Second

// serveOptions are the flags of serve alone.
type serveOptions struct {
	addr  string
	hosts []string
}

func (o *serveOptions) add(set *pflag.FlagSet) {
	set.StringVar(&o.addr, "addr", defaultAddr, "`ADDR` to listen on; without a host, such as :8333, the loopback address")
	set.StringArrayVar(&o.hosts, "allow-host", nil, "`NAME` by which clients may call this server, beside its addresses and localhost (repeatable)")
}

func serveCommand() (*pflag.FlagSet, runner) {
	set := newFlags("serve")
	var opt options
	var o serveOptions
	o.add(set)
	opt.add(set)
	opt.watching.add(set)
	return set, func(ctx context.Context, args []string, out console) error {
		if err := wantArgs(args, 1, 1, "SOURCE"); err != nil {
			return err
		}
		coarseTimers()
		return serveHTTP(ctx, args[0], opt, o, out)
	}
}

// serveHTTP serves SOURCE over HTTP until a signal.
func serveHTTP(ctx context.Context, src string, opt options, o serveOptions, out console) error {
	signals, stop := stopSignals()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := openInterruptibly(ctx, cancel, signals, src, opt, out)
	if err != nil {
		return err
	}
	defer s.closeSoon(signals)
	if err := s.checkRoot(ctx); err != nil {
		return err
	}
	watch, err := s.serveMetrics()
	if err != nil {
		return err
	}
	defer watch.Close()
	l, err := listen(o.addr)
	if err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	server := web.NewServer(s.webHandler(o), s.log)
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	s.announce(l.Addr(), out)
	select {
	case err := <-ended:
		return fmt.Errorf("no longer served: %w", err)
	case <-signals:
	}
	s.notify(notifyStopping, "finishing replies")
	return drain(server, signals, cancel)
}

// announce tells where the tree is, and whom it is open to.
func (s *session) announce(at net.Addr, out console) {
	if !isLoopback(at) {
		s.log.Warn("every machine that reaches this address can read every row: there is no password", "address", at.String())
	}
	fmt.Fprintf(out.out, "http://%s/\n", at)
	s.notify(notifyReady, "serving http://"+at.String()+"/")
	s.log.Info("serving", "url", "http://"+at.String()+"/")
}

func (s *session) webHandler(o serveOptions) http.Handler {
	title := redact(s.source)
	if _, err := os.Stat(s.source); err == nil {
		title = filepath.Base(s.source) // the rest of the path is nobody's business
	}
	return web.GuardHost(web.NewHandler(web.Options{Tree: s.tree, Errno: fs.Errno, Title: title, Activity: s.activity}), o.hosts)
}

// drain lets replies under way end for a while; a further signal does not wait.
func drain(server *http.Server, signals <-chan os.Signal, cancel func()) error {
	ctx, stop := context.WithTimeout(context.Background(), drainPatience)
	defer stop()
	go func() {
		select {
		case <-signals:
			stop()
		case <-ctx.Done():
		}
	}()
	err := server.Shutdown(ctx)
	cancel()
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return server.Close()
	}
	return err
}
