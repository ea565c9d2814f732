package cache

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// errTooLarge stops a Writer whose value could never be kept.
var errTooLarge = errors.New("value is larger than the cache")

// Writer streams one value into a Disk. It becomes visible, whole, at Commit;
// a Writer closed before leaves nothing. Failures (a full or read-only disk) are
// logged once and stick: the value is then not kept. Not safe for concurrent use.
type Writer struct {
	disk *Disk
	root *os.Root
	hash [sha256.Size]byte
	temp string
	file *os.File
	buf  []byte // the unfinished block
	sums []byte // of finished blocks
	n    int64  // bytes of the value in finished blocks
	err  error
}

// Create starts a value for key. It never fails: on a nil Disk, or where nothing
// can be written, the Writer takes the bytes and keeps nothing.
func (d *Disk) Create(key string) *Writer {
	w := &Writer{disk: d, hash: hashOf(key)}
	if d == nil {
		w.err = fs.ErrClosed
		return w
	}
	w.root = d.root.Load()
	err := w.openTemp()
	if errors.Is(err, fs.ErrNotExist) {
		// The directory was deleted under us.
		if err = d.reopen(w.root); err == nil {
			w.root = d.root.Load()
			err = w.openTemp()
		}
	}
	w.fail(err)
	return w
}

func (w *Writer) openTemp() error {
	w.temp = path.Join(tempDir, rand.Text())
	f, err := w.root.OpenFile(w.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err := mkdir(w.root, tempDir); err != nil {
			return err
		}
		f, err = w.root.OpenFile(w.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return err
	}
	w.file = f
	return nil
}

func mkdir(root *os.Root, name string) error {
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// fail makes the first error stick, and logs it.
func (w *Writer) fail(err error) {
	if err == nil || w.err != nil {
		return
	}
	w.err = err
	w.disk.warn("cannot write to the cache; going on without", err)
}

// Write appends to the value. It always takes all of p; whether the value is
// kept is told by Commit.
func (w *Writer) Write(p []byte) (int, error) {
	taken := len(p)
	for len(p) > 0 && w.err == nil {
		if n := len(p) / blockLen * blockLen; n > 0 && len(w.buf) == 0 {
			w.flush(p[:n])
			p = p[n:]
			continue
		}
		k := min(len(p), blockLen-len(w.buf))
		w.buf = append(w.buf, p[:k]...)
		p = p[k:]
		if len(w.buf) == blockLen {
			w.flush(w.buf)
			w.buf = w.buf[:0]
		}
	}
	return taken, nil
}

// flush writes blocks and keeps their checksums.
func (w *Writer) flush(b []byte) {
	n := int64(len(b))
	if storedSize(w.n+n) > w.disk.max {
		w.err = errTooLarge
		return
	}
	w.sums = appendSums(w.sums, w.hash, w.n/blockLen, b)
	if _, err := w.file.Write(b); err != nil {
		w.fail(err)
	}
	w.n += n
}

// Commit makes the value visible and reports whether it did.
func (w *Writer) Commit() bool {
	if w.err == nil && len(w.buf) > 0 {
		w.flush(w.buf)
	}
	if w.err != nil {
		return false
	}
	w.fail(w.publish())
	committed := w.err == nil
	if committed {
		w.temp, w.err = "", fs.ErrClosed
	}
	return committed
}

// publish completes the file, makes room and renames.
func (w *Writer) publish() error {
	if _, err := w.file.Write(append(w.sums, trailer(w.hash, w.n)...)); err != nil {
		return err
	}
	if err := w.file.Close(); err != nil {
		return err
	}
	w.file = nil
	w.disk.makeRoom(charged(storedSize(w.n)))
	name := fileOf(w.hash)
	err := w.root.Rename(w.temp, name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := mkdir(w.root, path.Dir(name)); err != nil {
			return err
		}
		err = w.root.Rename(w.temp, name)
	}
	if err != nil {
		return fmt.Errorf("publishing an entry: %w", err)
	}
	return nil
}

// Close gives up a value that was not committed. It may be called twice.
func (w *Writer) Close() error {
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
	if w.temp != "" && w.root != nil {
		_ = w.root.Remove(w.temp)
		w.temp = ""
	}
	if w.err == nil {
		w.err = fs.ErrClosed
	}
	return nil
}
