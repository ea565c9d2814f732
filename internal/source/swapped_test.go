package source

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSwappedForLinks: while a file, or the folder it lies in, is replaced by links
// that lead out and back again, no read gives a byte of what lies outside.
func TestSwappedForLinks(t *testing.T) {
	base := t.TempDir()
	inside, outside := filepath.Join(base, "in"), filepath.Join(base, "out")
	const size = 64 << 10
	write(t, filepath.Join(inside, "d", "x"), bytes.Repeat([]byte("i"), size))
	write(t, filepath.Join(outside, "x"), bytes.Repeat([]byte("O"), size))
	info, err := os.Stat(filepath.Join(inside, "d", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(outside, "x"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err) // as like each other as two files can be
	}
	for name, c := range map[string]struct{ path, target string }{
		"file":   {"d/x", filepath.Join(outside, "x")},
		"folder": {"d", outside},
	} {
		t.Run(name, func(t *testing.T) {
			place, aside, link := filepath.Join(inside, c.path), filepath.Join(base, "aside"), filepath.Join(base, "link")
			stop, done := make(chan struct{}), make(chan error, 1)
			go func() { done <- swap(place, aside, link, c.target, stop) }()
			read, refused := 0, 0
			for began := time.Now(); time.Since(began) < 2*time.Second && (read < 500 || refused < 500); {
				l := newLocal(t, 2, inside)
				b := make([]byte, size)
				o, err := l.Open(context.Background(), filepath.Join(inside, "d", "x"))
				if err == nil && o.Size() == size {
					_, err = o.ReadAt(context.Background(), b, 0)
				}
				if bytes.ContainsRune(b, 'O') {
					t.Fatal("read what lies outside")
				}
				if err == nil {
					read++
				} else {
					refused++
				}
				l.pool.CloseIdle()
				for _, r := range l.roots {
					r.root.Close()
				}
			}
			close(stop)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if read == 0 || refused == 0 {
				t.Errorf("%d reads, %d refused: nothing was swapped under them", read, refused)
			}
		})
	}
}

// swap puts a link in a place and what was there back, in turns.
func swap(place, aside, link, target string, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := os.Symlink(target, link); err != nil {
			return err
		}
		if err := os.Rename(place, aside); err != nil {
			return err
		}
		if err := os.Rename(link, place); err != nil {
			return err
		}
		time.Sleep(50 * time.Microsecond)
		if err := os.Remove(place); err != nil {
			return err
		}
		if err := os.Rename(aside, place); err != nil {
			return err
		}
		time.Sleep(50 * time.Microsecond)
	}
}
