package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/icefs/icefs/fs"
)

// mountsName is a program name under which the test binary runs many mounts in
// one process, one after the other or together: a process for each would take
// most of a sweep's time.
const mountsName = "icefs-mounts"

// order is a command line of icefs, and reply how it ended.
type order struct {
	ID   int
	Args []string
}

type reply struct {
	ID   int
	Code int
	Said string // on standard error
}

// runMounts is the program: it takes orders from standard input, one in a line
// of JSON, and replies on standard output.
func runMounts() {
	in := json.NewDecoder(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			os.Exit(exitOK)
		}
		go func() {
			var said strings.Builder
			code := Main(o.Args, nil, io.Discard, &said)
			mu.Lock()
			defer mu.Unlock()
			out.Encode(reply{o.ID, code, said.String()})
		}()
	}
}

// mountServer is a process of runMounts.
type mountServer struct {
	cmd     *exec.Cmd
	scratch string // folder of mountpoints and logs
	in      *json.Encoder
	died    chan struct{} // closed when the process has ended
	panic   *strings.Builder

	mu      sync.Mutex
	last    int
	waiting map[int]chan reply
}

func startMountServer(t *testing.T) *mountServer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), mountsName)
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	s := &mountServer{cmd: exec.Command(name), scratch: t.TempDir(), died: make(chan struct{}), panic: new(strings.Builder), waiting: map[int]chan reply{}}
	s.cmd.Env = append(os.Environ(), timersEnv+"=1")
	s.cmd.Stderr = s.panic
	in, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.in = json.NewEncoder(in)
	go s.listen(out)
	t.Cleanup(func() {
		in.Close()
		select {
		case <-s.died:
		case <-time.After(patience):
			s.cmd.Process.Kill()
			<-s.died
		}
	})
	return s
}

// listen hands out replies until the process ends.
func (s *mountServer) listen(out io.Reader) {
	for d := json.NewDecoder(bufio.NewReader(out)); ; {
		var r reply
		if err := d.Decode(&r); err != nil {
			break
		}
		s.mu.Lock()
		s.waiting[r.ID] <- r
		s.mu.Unlock()
	}
	s.cmd.Wait()
	close(s.died)
}

// mounted is one mount of a mountServer.
type mounted struct {
	t      *testing.T
	server *mountServer
	dir    string
	log    string // file
	ended  chan reply
}

// mount mounts src. It returns an error, what icefs says, if it refuses to.
func (s *mountServer) mount(t *testing.T, src, cache string, flags ...string) (*mounted, error) {
	t.Helper()
	scratch, err := os.MkdirTemp(s.scratch, "mount")
	if err != nil {
		return nil, err
	}
	m := &mounted{t: t, server: s, dir: filepath.Join(scratch, "mnt"), log: filepath.Join(scratch, "log"), ended: make(chan reply, 1)}
	if err := os.Mkdir(m.dir, 0o700); err != nil {
		return nil, err
	}
	outside, err := deviceOf(m.dir)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.last++
	id := s.last
	s.waiting[id] = m.ended
	args := append([]string{"mount", "--cache-dir", cache, "--log-format", "json", "--log-file", m.log, src, m.dir}, flags...)
	err = s.in.Encode(order{id, args})
	s.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, s.panic)
	}
	t.Cleanup(func() {
		if _, on, _ := fs.MountedOn(m.dir); on {
			fs.Unmount(m.dir, true)
		}
	})
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if dev, err := deviceOf(m.dir); err == nil && dev != outside {
			return m, nil
		}
		select {
		case r := <-m.ended:
			return nil, errors.New(r.Said)
		case <-s.died:
			return nil, fmt.Errorf("the process of the mounts ended\n%s", s.panic)
		default:
		}
		if time.Since(start) > patience {
			return nil, errors.New("not mounted in time")
		}
	}
}

func deviceOf(dir string) (uint64, error) {
	var st syscall.Stat_t
	err := syscall.Stat(dir, &st)
	return st.Dev, err
}

// unmount ends the mount, and tells whether it was alive to the end.
func (m *mounted) unmount() bool {
	m.t.Helper()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		err := fs.Unmount(m.dir, false)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrBusy) || time.Since(start) > patience {
			m.t.Errorf("unmount: %v", err)
			fs.Unmount(m.dir, true)
			return false
		}
	}
	select {
	case r := <-m.ended:
		if r.Code != exitOK {
			m.t.Errorf("icefs mount ended with %d: %s", r.Code, r.Said)
		}
		return r.Code == exitOK
	case <-m.server.died:
		m.t.Error("the process of the mounts has died")
	case <-time.After(patience):
		m.server.cmd.Process.Signal(syscall.SIGQUIT) // it tells what its goroutines do
		<-m.server.died
		m.t.Errorf("icefs mount does not end\n%s", m.server.panic)
	}
	return false
}

// logLine is a line of the log.
type logLine struct {
	Level, Msg, Path, Errno, Cause, Err, Panic string
}

// said returns the log.
func (m *mounted) said() []logLine {
	m.t.Helper()
	f, err := os.Open(m.log)
	if err != nil {
		m.t.Error(err)
		return nil
	}
	defer f.Close()
	var lines []logLine
	for d := json.NewDecoder(f); ; {
		var l logLine
		if err := d.Decode(&l); err == io.EOF {
			return lines
		} else if err != nil {
			m.t.Error(err)
			return lines
		}
		lines = append(lines, l)
	}
}
