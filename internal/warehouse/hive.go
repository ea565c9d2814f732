//go:build !nohive

package warehouse

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/beltran/gohive/hive_metastore"
)

// hiveCatalog is a Hive metastore, spoken to by Thrift without SASL: databases
// are namespaces, and a table of ours has the parameter metadata_location.
type hiveCatalog struct {
	address string
	props   map[string]string
	retry   retry

	mu   sync.Mutex // guards below; held during a call: a connection has one at a time
	conn *thrift.TBufferedTransport
}

var _ remote = (*hiveCatalog)(nil)

// hivePort is the metastore's usual port.
const hivePort = "9083"

// hiveBatch is how many tables are described in one answer.
const hiveBatch = 200

// hivePatience bounds one call: a metastore that lists a large database thinks
// for a while.
const hivePatience = 30 * time.Second

func openHive(ctx context.Context, props map[string]string, e *env) (remote, error) {
	if strings.EqualFold(props["hive.kerberos-authentication"], "true") {
		return nil, fmt.Errorf("%w: a Hive metastore with Kerberos", ErrUnsupportedSource)
	}
	u, err := url.Parse(props[propURI])
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("%w: uri: write thrift://host:port", ErrUnsupportedSource)
	}
	port := u.Port()
	if port == "" {
		port = hivePort
	}
	c := &hiveCatalog{address: net.JoinHostPort(u.Hostname(), port), props: props, retry: e.retry()}
	_, err = c.namespaces(ctx, nil)
	return c, err
}

// ask makes a call until it is answered, over a new connection if the last one
// has failed.
func (c *hiveCatalog) ask(ctx context.Context, call func(context.Context, *hive_metastore.ThriftHiveMetastoreClient) error) error {
	err := c.retry.do(ctx, func(ctx context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.conn == nil {
			socket := thrift.NewTSocketConf(c.address, &thrift.TConfiguration{ConnectTimeout: dialPatience, SocketTimeout: hivePatience})
			conn := thrift.NewTBufferedTransport(socket, 64<<10)
			if err := conn.Open(); err != nil {
				return fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
			c.conn = conn
		}
		client := hive_metastore.NewThriftHiveMetastoreClientFactory(c.conn, thrift.NewTBinaryProtocolFactoryConf(nil))
		err := call(ctx, client)
		var missing *hive_metastore.NoSuchObjectException
		var unknown *hive_metastore.UnknownDBException
		switch {
		case err == nil:
			return nil
		case errors.As(err, &missing), errors.As(err, &unknown):
			return fmt.Errorf("%w: %w", ErrGone, err)
		}
		c.conn.Close()
		c.conn = nil
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("catalog thrift://%s: %w", c.address, err)
	}
	return err
}

// isUnknownMethod reports whether a metastore has no such call. Hive 4 has lost
// those that take no request, Hive before 2.3 has none that do.
func isUnknownMethod(err error) bool {
	var app thrift.TApplicationException
	return errors.As(err, &app) && app.TypeId() == thrift.UNKNOWN_METHOD
}

// namespaces implements remote. Hive's databases have no levels.
func (c *hiveCatalog) namespaces(ctx context.Context, parent []string) (names []string, err error) {
	if len(parent) > 0 {
		return nil, nil
	}
	err = c.ask(ctx, func(ctx context.Context, h *hive_metastore.ThriftHiveMetastoreClient) (err error) {
		names, err = h.GetAllDatabases(ctx)
		return err
	})
	return names, err
}

// tables implements remote. Which of a database's tables are ours only their
// descriptions tell.
func (c *hiveCatalog) tables(ctx context.Context, namespace []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if len(namespace) != 1 {
			return
		}
		var names []string
		err := c.ask(ctx, func(ctx context.Context, h *hive_metastore.ThriftHiveMetastoreClient) (err error) {
			names, err = h.GetAllTables(ctx, namespace[0])
			return err
		})
		for len(names) > 0 && err == nil {
			batch := names[:min(len(names), hiveBatch)]
			names = names[len(batch):]
			var tables []*hive_metastore.Table
			err = c.ask(ctx, func(ctx context.Context, h *hive_metastore.ThriftHiveMetastoreClient) error {
				answer, err := h.GetTableObjectsByNameReq(ctx, &hive_metastore.GetTablesRequest{DbName: namespace[0], TblNames: batch})
				if isUnknownMethod(err) {
					tables, err = h.GetTableObjectsByName(ctx, namespace[0], batch)
				} else if err == nil {
					tables = answer.Tables
				}
				return err
			})
			for _, t := range tables {
				if err == nil && isIceberg(t.Parameters) && !yield(t.TableName, nil) {
					return
				}
			}
		}
		if err != nil {
			yield("", err)
		}
	}
}

// table implements remote.
func (c *hiveCatalog) table(ctx context.Context, namespace []string, name, _ string) (found, error) {
	if len(namespace) != 1 {
		return found{}, fmt.Errorf("%w: Hive's tables are in databases", ErrGone)
	}
	var t *hive_metastore.Table
	err := c.ask(ctx, func(ctx context.Context, h *hive_metastore.ThriftHiveMetastoreClient) error {
		answer, err := h.GetTableReq(ctx, &hive_metastore.GetTableRequest{DbName: namespace[0], TblName: name})
		if isUnknownMethod(err) {
			t, err = h.GetTable(ctx, namespace[0], name)
		} else if err == nil {
			t = answer.Table
		}
		return err
	})
	switch {
	case err != nil:
		return found{}, err
	case !isIceberg(t.Parameters):
		return found{}, fmt.Errorf("%w: not a table of Iceberg", ErrGone)
	}
	return found{location: t.Parameters[paramLocation], access: c.props}, nil
}

// close implements remote.
func (c *hiveCatalog) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}
