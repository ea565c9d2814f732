package fs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/tree/treetest"
	"github.com/icefs/icefs/merge"
	"github.com/icefs/icefs/snapshot"
)

// A process must not read what it serves itself, so the test binary runs once
// more as the server, and obeys commands on its standard input (serve).

const serverEnv = "ICEFS_FS_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverEnv); dir != "" {
		if err := serve(dir, os.Args[1:]); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const uuid = "11111111-2222-3333-4444-555555555555"

// serve mounts a tree of one table: args are the number of its snapshots and the
// refresh interval. Each command is answered by "ok".
func serve(dir string, args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	refresh, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	s := testServer{views: &treetest.Views{Pad: 300_000}, table: treetest.NewTable(treetest.Metadata(uuid, n))}
	s.table.Current().Files = []snapshot.File{
		{DataFile: &snapshot.DataFile{Path: "file:/wh/t/data/a.parquet", Format: snapshot.Parquet, Size: 3 << 20}},
		{DataFile: &snapshot.DataFile{Path: "file:/wh/t/data/b.parquet", Format: snapshot.Parquet, Size: 1}},
	}
	db := &treetest.Namespace{Tabs: []treetest.Named[*treetest.Table]{{Name: "t", Of: s.table}}}
	tr, err := tree.New(context.Background(), tree.Options{
		Catalog: treetest.Catalog{Space: db},
		Views:   &s,
		Control: []tree.ControlFile{{Name: "time", Content: func(context.Context) ([]byte, error) {
			return fmt.Appendln(nil, time.Now().UnixNano()), nil
		}}},
	})
	if err != nil {
		return err
	}
	mounted, err := Mount(dir, Options{Tree: tr, Refresh: refresh, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	fmt.Println("ok")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := s.command(strings.Fields(lines.Text())); err != nil {
			return err
		}
		fmt.Println("ok")
	}
	if err := Unmount(dir, true); err != nil {
		return err
	}
	mounted.Wait()
	return nil
}

// testServer is the table served, and its views with faults.
type testServer struct {
	views *treetest.Views
	table *treetest.Table

	mu      sync.Mutex
	blocked bool
	slow    bool
	panics  bool
}

func (s *testServer) command(words []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch words[0] {
	case "snapshots": // a commit: as many snapshots
		n, err := strconv.Atoi(words[1])
		if err != nil {
			return err
		}
		s.table.Commit(&treetest.Loaded{Meta: treetest.Metadata(uuid, n)})
	case "expire": // the first snapshot
		meta := *s.table.Current().Meta
		meta.Snapshots = meta.Snapshots[1:]
		s.table.Commit(&treetest.Loaded{Meta: &meta})
	case "fail":
		err := map[string]error{"changed": source.ErrChanged, "missing": source.ErrNotFound,
			"unsupported": merge.ErrUnsupported, "timeout": context.DeadlineExceeded, "other": errors.New("x")}[words[1]]
		s.views.Fail.Store(&err)
	case "block": // reads of data.parquet, and sizes of data.jsonl
		s.blocked = true
	case "slow": // sizes of data.jsonl take a while
		s.slow = true
	case "panic":
		s.panics = true
	default:
		return fmt.Errorf("no command %q", words[0])
	}
	return nil
}

// Parquet is a view that fails as told.
func (s *testServer) Parquet(sc merge.Scan) merge.View {
	return &faultyView{s.views.Parquet(sc), s}
}

func (s *testServer) CSV(sc merge.Scan) merge.View { return s.views.CSV(sc) }

// JSONL is a view that takes its time to tell its size.
func (s *testServer) JSONL(sc merge.Scan) merge.View { return &slowView{s.views.JSONL(sc), s} }

func (s *testServer) Part(sc merge.Scan, i int) merge.View { return s.views.Part(sc, i) }

type faultyView struct {
	merge.View
	s *testServer
}

func (v *faultyView) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	v.s.mu.Lock()
	blocked, panics := v.s.blocked, v.s.panics
	v.s.mu.Unlock()
	if panics {
		panic("a view that panics")
	}
	if blocked {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return v.View.ReadAt(ctx, p, off)
}

func (v *faultyView) Summary(ctx context.Context) (merge.Summary, error) {
	return v.View.(merge.Summarizer).Summary(ctx)
}

type slowView struct {
	merge.View
	s *testServer
}

func (v *slowView) Size(ctx context.Context) (int64, error) {
	v.s.mu.Lock()
	blocked, slow := v.s.blocked, v.s.slow
	v.s.mu.Unlock()
	if blocked {
		<-ctx.Done()
	} else if slow {
		select {
		case <-ctx.Done():
		case <-time.After(4 * lookupPatience):
		}
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return v.View.Size(ctx)
}

var _ tree.Views = (*testServer)(nil)

// mounted is a running server, and its mountpoint.
type mounted struct {
	dir string
	do  func(command string)
}

// start mounts a table of n snapshots for the length of a test.
func start(t *testing.T, n int, refresh time.Duration) mounted {
	t.Helper()
	return startAt(t, t.TempDir(), n, refresh)
}

func startAt(t *testing.T, dir string, n int, refresh time.Duration) mounted {
	t.Helper()
	cmd := exec.Command(os.Args[0], strconv.Itoa(n), refresh.String())
	cmd.Env = append(os.Environ(), serverEnv+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v\n%s", err, log.String())
		}
	})
	answers := bufio.NewScanner(out)
	wait := func() {
		t.Helper()
		if !answers.Scan() || answers.Text() != "ok" {
			t.Fatalf("the server says %q", answers.Text())
		}
	}
	wait()
	return mounted{dir: dir, do: func(command string) {
		t.Helper()
		fmt.Fprintln(in, command)
		wait()
	}}
}
