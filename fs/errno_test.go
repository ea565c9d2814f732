package fs

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/icefs/icefs/deletes"
	"github.com/icefs/icefs/internal/avrofile"
	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/internal/tree"
	"github.com/icefs/icefs/internal/warehouse"
	"github.com/icefs/icefs/merge"
)

func TestErrnoOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want syscall.Errno
	}{
		{context.Canceled, syscall.EINTR},
		{context.DeadlineExceeded, syscall.ETIMEDOUT},
		{iofs.ErrNotExist, syscall.ENOENT},
		{warehouse.ErrGone, syscall.ENOENT},
		{source.ErrChanged, syscall.ESTALE},
		{tree.ErrExpired, syscall.ESTALE},
		{fmt.Errorf("%w: %w", tree.ErrExpired, source.ErrNotFound), syscall.ESTALE},
		{fmt.Errorf("%w: %w", source.ErrNotFound, tree.ErrExpired), syscall.ESTALE},
		{source.ErrNotFound, syscall.EIO},
		{fmt.Errorf("%w: %w", source.ErrNotFound, iofs.ErrNotExist), syscall.EIO},
		{source.ErrTruncated, syscall.EIO},
		{source.ErrOutside, syscall.EIO},
		{source.ErrRead, syscall.EIO},
		{source.ErrUnsupported, syscall.EOPNOTSUPP},
		{pqfile.ErrCorrupt, syscall.EIO},
		{avrofile.ErrCorrupt, syscall.EIO},
		{avrofile.ErrUnsupported, syscall.EOPNOTSUPP},
		{pqfile.ErrUnsupported, syscall.EOPNOTSUPP},
		{pqfile.ErrNoFieldIDs, syscall.EOPNOTSUPP},
		{deletes.ErrCorrupt, syscall.EIO},
		{deletes.ErrUnsupported, syscall.EOPNOTSUPP},
		{merge.ErrCorrupt, syscall.EIO},
		{merge.ErrUnsupported, syscall.EOPNOTSUPP},
		{warehouse.ErrCorrupt, syscall.EIO},
		{warehouse.ErrUnsupported, syscall.EOPNOTSUPP},
		{errors.New("anything else"), syscall.EIO},
	} {
		if got := Errno(fmt.Errorf("data.csv: %w", c.err)); got != c.want {
			t.Errorf("%v gives %v, want %v", c.err, got, c.want)
		}
	}
}

func TestFailuresAreLoggedOnce(t *testing.T) {
	var f failures
	now := time.Now()
	a, b := failure{"a", syscall.EIO}, failure{"a", syscall.ESTALE}
	for i, c := range []struct {
		what failure
		at   time.Time
		want bool
	}{{a, now, true}, {a, now.Add(logAgain - 1), false}, {b, now, true}, {a, now.Add(logAgain), true}} {
		if got := f.again(c.what, c.at); got != c.want {
			t.Errorf("failure %d is logged: %t", i, got)
		}
	}
	for i := range 2 * maxFailures {
		f.again(failure{fmt.Sprint(i), syscall.EIO}, now)
	}
	if len(f.seen) > maxFailures {
		t.Errorf("%d failures are remembered", len(f.seen))
	}
}

func TestParseMountInfo(t *testing.T) {
	m, ok := parseMountInfo(`36 35 0:52 / /mnt/my\040dir\134 ro,noatime shared:1 master:2 - fuse.icefs icefs ro,user_id=0`)
	if want := (Mounted{Dir: `/mnt/my dir\`, Device: "0:52", Type: "fuse.icefs"}); !ok || m != want {
		t.Errorf("%+v, %t", m, ok)
	}
	for _, bad := range []string{"", "36 35 0:52 / /mnt", "a - b"} {
		if m, ok := parseMountInfo(bad); ok {
			t.Errorf("%q gives %+v", bad, m)
		}
	}
}
