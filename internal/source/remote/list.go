package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/icefs/icefs/internal/source"
)

// ReadDir implements source.Folders, by pages of a listing.
func (f *folders) ReadDir(ctx context.Context, location string, each func(fs.DirEntry) bool) error {
	b, key, err := f.reach(location)
	if err != nil {
		return err
	}
	prefix := key
	if prefix != "" && prefix[len(prefix)-1] != '/' {
		prefix += "/"
	}
	found := false
	for token := ""; ; {
		var page *Page
		err := f.stores.do(ctx, b, func(ctx context.Context, from Bucket, _ func()) (err error) {
			page, err = from.List(ctx, prefix, token)
			return err
		})
		if err != nil {
			return classify(err, location)
		}
		for _, e := range page.entries() {
			found = true
			if !each(e) {
				return nil
			}
		}
		if page.Next == "" {
			break
		}
		if page.Next == token {
			return fmt.Errorf("%w: %s: the store's listing has no end", source.ErrRead, location)
		}
		token = page.Next
	}
	if !found {
		return fmt.Errorf("%w: %s: nothing lies below it", source.ErrNotFound, location)
	}
	return nil
}

// entries are the names of a page that can be shown: an object that stands for
// the folder itself has none.
func (p *Page) entries() []fs.DirEntry {
	var out []fs.DirEntry
	add := func(name string, mode fs.FileMode) {
		if name != "" && name != "." && name != ".." {
			out = append(out, entry{name, mode})
		}
	}
	for _, name := range p.Folders {
		add(name, fs.ModeDir)
	}
	for _, name := range p.Objects {
		add(name, 0)
	}
	return out
}

// entry is a name in a listing.
type entry struct {
	name string
	mode fs.FileMode
}

var _ fs.DirEntry = entry{}

func (e entry) Name() string      { return e.name }
func (e entry) IsDir() bool       { return e.mode.IsDir() }
func (e entry) Type() fs.FileMode { return e.mode }

// Info implements fs.DirEntry; a listing is not asked for more than names.
func (e entry) Info() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// refused reports whether other credentials might do.
func refused(err error) bool {
	var status *StatusError
	return errors.As(err, &status) &&
		(status.Code == http.StatusForbidden || status.Code == http.StatusUnauthorized ||
			status.Code == http.StatusBadRequest && status.Reason == "ExpiredToken")
}
