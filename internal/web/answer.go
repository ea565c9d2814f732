package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/icefs/icefs/merge"
)

// answer is a ResponseWriter that holds the headers back until the first bytes
// of the body are there, so that a failure to read them can still be told.
type answer struct {
	w    http.ResponseWriter
	from *reader // of the body

	status int // told by the writer, not sent yet; 0 = none
	begun  bool
	sent   int64 // bytes of the body
	err    error // why the call was not served
}

var _ io.ReaderFrom = (*answer)(nil)

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// begin sends the headers, unless a failure took their place.
func (a *answer) begin() {
	if !a.begun && a.status != 0 {
		a.w.WriteHeader(a.status)
	}
	a.begun = true
}

// Write implements http.ResponseWriter. A client that takes nothing for
// stallTimeout is cut off.
func (a *answer) Write(p []byte) (int, error) {
	a.begin()
	// Where the connection has no deadlines (a test's recorder) there are none.
	_ = http.NewResponseController(a.w).SetWriteDeadline(time.Now().Add(stallTimeout))
	n, err := a.w.Write(p)
	a.sent += int64(n)
	return n, err
}

// readAtOnce is how much is read from a view at a time: a column chunk or two
// of a small table, a few milliseconds of a network.
const readAtOnce = 1 << 20

// ReadFrom implements io.ReaderFrom: io.Copy reads in pieces of readAtOnce.
func (a *answer) ReadFrom(from io.Reader) (n int64, err error) {
	length := int64(readAtOnce)
	if l, ok := from.(*io.LimitedReader); ok {
		length = min(length, l.N)
	}
	buf := make([]byte, max(length, 1))
	for {
		m, err := from.Read(buf)
		if m > 0 {
			w, werr := a.Write(buf[:m])
			n += int64(w)
			if werr != nil {
				return n, werr
			}
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// reader is an open file as http.ServeContent reads it. It never gives fewer
// bytes than the file has: a view that ends early is an error. For a reply of
// several ranges, ServeContent reads in a goroutine that may outlive it.
type reader struct {
	ctx  context.Context
	file merge.Handle
	size int64

	mu     sync.Mutex // held while reading and closing
	off    int64
	err    error // of the first read that failed
	closed bool
}

// close closes the file once nothing is reading it.
func (r *reader) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.file.Close()
}

// failure is the error of the first read that failed.
func (r *reader) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

var _ io.ReadSeeker = (*reader)(nil)

var errClosed = errors.New("the reply has ended")

// Seek implements io.Seeker.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += r.off
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return 0, errors.New("a position before the file's start")
	}
	r.off = offset
	return offset, nil
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, errClosed
	}
	if r.off >= r.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.size-r.off)]
	n, err := r.file.ReadAt(r.ctx, p, r.off)
	r.off += int64(n)
	if n == len(p) {
		return n, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	r.err = err
	return 0, err
}

// readAll reads a file of .icefs.
func readAll(ctx context.Context, h merge.Handle) ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(readerAt{ctx, h}, 0, maxDynamic))
}

// maxDynamic bounds a file of .icefs, in bytes.
const maxDynamic = 16 << 20

type readerAt struct {
	ctx  context.Context
	file merge.Handle
}

// ReadAt implements io.ReaderAt.
func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r.file.ReadAt(r.ctx, p, off) }
