package fs

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"

	"github.com/icefs/icefs/internal/tree"
)

// Extended attributes of what lies below snapshots/<id>. Their list costs
// nothing; rows, deleted-rows and layout read footers and deletes when they are
// asked for.
const (
	xattrPrefix   = "user.icefs."
	xattrSnapshot = xattrPrefix + "snapshot-id"
	xattrSchema   = xattrPrefix + "schema-id"
	xattrRows     = xattrPrefix + "rows"
	xattrDeleted  = xattrPrefix + "deleted-rows"
	xattrLayout   = xattrPrefix + "layout"
)

var (
	_ gofs.NodeGetxattrer  = (*dirNode)(nil)
	_ gofs.NodeListxattrer = (*dirNode)(nil)
	_ gofs.NodeGetxattrer  = (*fileNode)(nil)
	_ gofs.NodeListxattrer = (*fileNode)(nil)
)

// xattrNames are the attributes of an entry: folders have no layout.
func xattrNames(n tree.Node) []string {
	if _, ok := n.(tree.Facts); !ok {
		return nil
	}
	names := []string{xattrSnapshot, xattrSchema, xattrRows, xattrDeleted}
	if _, file := n.(tree.File); file {
		names = append(names, xattrLayout)
	}
	return names
}

// getxattr copies an attribute's value; ENODATA if the entry has none of that
// name, as for every attribute that is not ours.
func (n *node) getxattr(ctx context.Context, what tree.Node, attr string, dest []byte) (_ uint32, errno syscall.Errno) {
	facts, ok := what.(tree.Facts)
	if !ok || !strings.HasPrefix(attr, xattrPrefix) {
		return 0, syscall.ENODATA
	}
	defer n.fs.watch("getxattr", &n.Inode, "")(&errno)
	value, err := fact(ctx, facts, attr)
	if errors.Is(err, tree.ErrNoFact) {
		return 0, syscall.ENODATA
	}
	if err != nil {
		return 0, n.fs.fail(ctx, "getxattr", &n.Inode, "", err)
	}
	return fill(dest, value)
}

// fact is the value of an attribute.
func fact(ctx context.Context, facts tree.Facts, attr string) (string, error) {
	switch attr {
	case xattrSnapshot, xattrSchema:
		id, schema, err := facts.Snapshot(ctx)
		if attr == xattrSchema {
			id = int64(schema)
		}
		return strconv.FormatInt(id, 10), err
	case xattrRows, xattrDeleted:
		rows, deleted, err := facts.Rows(ctx)
		if attr == xattrDeleted {
			rows = deleted
		}
		return strconv.FormatInt(rows, 10), err
	case xattrLayout:
		return facts.Layout(ctx)
	}
	return "", tree.ErrNoFact
}

// listxattr copies the names of an entry's attributes, each with a NUL behind it.
func listxattr(what tree.Node, dest []byte) (uint32, syscall.Errno) {
	var b strings.Builder
	for _, name := range xattrNames(what) {
		b.WriteString(name)
		b.WriteByte(0)
	}
	return fill(dest, b.String())
}

// fill answers with the value's length, and ERANGE if it does not fit.
func fill(dest []byte, value string) (uint32, syscall.Errno) {
	if len(dest) < len(value) {
		return uint32(len(value)), syscall.ERANGE
	}
	return uint32(copy(dest, value)), 0
}

// Getxattr implements getxattr(2).
func (n *dirNode) Getxattr(ctx context.Context, attr string, dest []byte) (uint32, syscall.Errno) {
	return n.getxattr(ctx, n.get(), attr, dest)
}

// Listxattr implements listxattr(2).
func (n *dirNode) Listxattr(_ context.Context, dest []byte) (uint32, syscall.Errno) {
	return listxattr(n.get(), dest)
}

// Getxattr implements getxattr(2).
func (n *fileNode) Getxattr(ctx context.Context, attr string, dest []byte) (uint32, syscall.Errno) {
	return n.getxattr(ctx, n.file, attr, dest)
}

// Listxattr implements listxattr(2).
func (n *fileNode) Listxattr(_ context.Context, dest []byte) (uint32, syscall.Errno) {
	return listxattr(n.file, dest)
}
