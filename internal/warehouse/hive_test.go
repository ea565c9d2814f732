//go:build !nohive

package warehouse

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/beltran/gohive/hive_metastore"
)

// fakeHive is a metastore of one database. Calls it does not know panic.
type fakeHive struct {
	hive_metastore.ThriftHiveMetastore
	tables map[string]map[string]string // parameters
	old    bool                         // as before Hive 2.3; else as Hive 4
}

func (f *fakeHive) GetTableReq(_ context.Context, r *hive_metastore.GetTableRequest) (*hive_metastore.GetTableResult_, error) {
	t, err := f.find(r.DbName, r.TblName)
	return &hive_metastore.GetTableResult_{Table: t}, err
}

func (f *fakeHive) GetTableObjectsByNameReq(_ context.Context, r *hive_metastore.GetTablesRequest) (*hive_metastore.GetTablesResult_, error) {
	return &hive_metastore.GetTablesResult_{Tables: f.findAll(r.DbName, r.TblNames)}, nil
}

func (f *fakeHive) GetAllDatabases(context.Context) ([]string, error) {
	return []string{"db", "default"}, nil
}

func (f *fakeHive) GetAllTables(_ context.Context, db string) ([]string, error) {
	if db != "db" {
		return nil, nil
	}
	return sortedKeys(f.tables), nil
}

func (f *fakeHive) GetTable(_ context.Context, db, name string) (*hive_metastore.Table, error) {
	return f.find(db, name)
}

func (f *fakeHive) find(db, name string) (*hive_metastore.Table, error) {
	params, ok := f.tables[name]
	if !ok || db != "db" {
		return nil, &hive_metastore.NoSuchObjectException{Message: name}
	}
	return &hive_metastore.Table{TableName: name, DbName: db, Parameters: params}, nil
}

func (f *fakeHive) GetTableObjectsByName(_ context.Context, db string, names []string) ([]*hive_metastore.Table, error) {
	return f.findAll(db, names), nil
}

func (f *fakeHive) findAll(db string, names []string) (found []*hive_metastore.Table) {
	for _, name := range names {
		if t, err := f.find(db, name); err == nil {
			found = append(found, t)
		}
	}
	return found
}

// serve listens at an address until stop is called.
func (f *fakeHive) serve(t *testing.T, address string) (at string, stop func()) {
	t.Helper()
	socket, err := thrift.NewTServerSocket(address)
	if err != nil {
		t.Fatal(err)
	}
	if err := socket.Listen(); err != nil {
		t.Fatal(err)
	}
	calls := hive_metastore.NewThriftHiveMetastoreProcessor(f)
	missing := []string{"get_table", "get_table_objects_by_name"}
	if f.old {
		missing = []string{"get_table_req", "get_table_objects_by_name_req"}
	}
	for _, name := range missing {
		delete(calls.ProcessorMap(), name)
	}
	server := thrift.NewTSimpleServer4(calls, socket,
		thrift.NewTBufferedTransportFactory(4096), thrift.NewTBinaryProtocolFactoryConf(nil))
	thrift.ServerStopTimeout = 100 * time.Millisecond
	go server.Serve()
	return socket.Addr().String(), func() { server.Stop() }
}

func TestHive(t *testing.T) {
	t.Run("4", func(t *testing.T) { testHive(t, false) })
	t.Run("before 2.3", func(t *testing.T) { testHive(t, true) })
}

func testHive(t *testing.T, old bool) {
	dir := t.TempDir()
	location := write(t, filepath.Join(dir, "t", "metadata", "1.metadata.json"), string(document(2)))
	ours := map[string]string{"table_type": "iceberg", "metadata_location": "file:" + location}
	h := &fakeHive{old: old, tables: map[string]map[string]string{"t": ours, "u": ours, "text": {"table_type": "x"}}}
	address, stop := h.serve(t, "127.0.0.1:0")
	c, err := OpenCatalog(context.Background(), "h", map[string]string{"uri": "thrift://" + address, "warehouse": "file:" + dir}, Options{Refresh: -1, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tables := tablesOf(t, c)
	if got := sortedKeys(tables); !slices.Equal(got, []string{"db/t", "db/u"}) {
		t.Errorf("tables %v", got)
	}
	before := load(t, tables["db/t"])
	for _, name := range []string{"none", "text"} {
		if _, err := tableAt(t, c, "db", name); !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	stop()
	if load(t, tables["db/t"]) != before {
		t.Error("a table changed in an outage")
	}
	if _, err := tableAt(t, c, "db", "none"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("an outage: %v", err)
	}
	_, stop = h.serve(t, address)
	defer stop()
	if _, err := tableAt(t, c, "db", "none"); !errors.Is(err, ErrGone) {
		t.Errorf("afterwards: %v", err)
	}
	for _, props := range []map[string]string{{"uri": "thrift://"}, {"uri": "thrift://" + address, "hive.kerberos-authentication": "true"}} {
		if _, err := OpenCatalog(context.Background(), "h", props, Options{}); !errors.Is(err, ErrUnsupportedSource) {
			t.Errorf("%v: %v", props, err)
		}
	}
}
