package fs

import (
	"context"
	"math"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/icefs/icefs/internal/tree"
)

var _ gofs.NodeStatfser = (*node)(nil)

// Figures of Statfs. Some tools refuse a file system of zero blocks, so one that
// cannot tell how much it holds says a TiB.
const (
	blockSize   = 4096
	otherBlocks = 1 << 40 / blockSize
	maxNameLen  = 255
)

// statfsPatience is how long the size of a table may take: its manifests may not
// have been read yet, and df asks every mount there is.
const statfsPatience = 500 * time.Millisecond

// Statfs reports a full file system: below a table's folder one of the length of
// the live data files (of the snapshot, or of the current one), elsewhere of a
// TiB. It never fails.
func (n *node) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	out.Bsize, out.Frsize = blockSize, blockSize
	out.NameLen = maxNameLen
	out.Blocks, out.Files = otherBlocks, math.MaxUint32
	ctx, cancel := context.WithTimeout(ctx, statfsPatience)
	defer cancel()
	if v := volumeOf(&n.Inode); v != nil {
		if bytes, files, err := v.Volume(ctx); err == nil {
			out.Blocks = uint64(bytes+blockSize-1) / blockSize
			out.Files = uint64(files)
		}
	}
	out.Blocks, out.Files = max(out.Blocks, 1), max(out.Files, 1)
	return 0
}

// volumeOf finds the nearest folder, upwards, that knows how much it holds.
func volumeOf(at *gofs.Inode) tree.Volume {
	for at != nil {
		if d, ok := at.Operations().(*dirNode); ok {
			if v, ok := d.get().(tree.Volume); ok {
				return v
			}
		}
		_, at = at.Parent()
	}
	return nil
}
