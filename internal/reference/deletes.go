package reference

import (
	"context"
	"fmt"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// Reserved field ids of position-delete files.
const (
	filePathID = 2147483546
	posID      = 2147483545
)

// deletedPositions are the positions that a file's vector or position-delete
// files delete.
func (m *Merge) deletedPositions(ctx context.Context, f *snapshot.File) (map[int64]bool, error) {
	if f.DV != nil {
		return m.vector(ctx, f)
	}
	dead := map[int64]bool{}
	for _, d := range f.Positions {
		if err := m.positionFile(ctx, d, f.Path, dead); err != nil {
			return nil, fmt.Errorf("%s: %w", d.Path, err)
		}
	}
	return dead, nil
}

// vector reads a file's deletion vector.
func (m *Merge) vector(ctx context.Context, f *snapshot.File) (map[int64]bool, error) {
	d := f.DV
	if !d.HasReferenced || source.Spelling(d.Referenced) != source.Spelling(f.Path) {
		return nil, fmt.Errorf("%s: vector references %q: %w", d.Path, d.Referenced, ErrCorrupt)
	}
	obj, err := m.Store.Open(ctx, d.Path)
	if err != nil {
		return nil, err
	}
	if d.ContentOffset < 0 || d.ContentSize < 0 || d.ContentSize > obj.Size()-d.ContentOffset {
		return nil, fmt.Errorf("%s: vector at %d+%d is not in the file: %w", d.Path, d.ContentOffset, d.ContentSize, ErrCorrupt)
	}
	blob := make([]byte, d.ContentSize)
	if _, err := obj.ReadAt(ctx, blob, d.ContentOffset); err != nil {
		return nil, err
	}
	positions, err := vectorPositions(blob, d.Records)
	if err != nil {
		return nil, fmt.Errorf("%s: vector at %d: %w: %w", d.Path, d.ContentOffset, ErrCorrupt, err)
	}
	if int64(len(positions)) != d.Records {
		return nil, fmt.Errorf("%s: vector at %d has %d positions, the manifest says %d: %w", d.Path, d.ContentOffset, len(positions), d.Records, ErrCorrupt)
	}
	return positions, nil
}

// positionFile adds the positions that a position-delete file has for a path.
func (m *Merge) positionFile(ctx context.Context, d *snapshot.DataFile, path string, dead map[int64]bool) error {
	rows, err := m.open(ctx, d, nil)
	if err != nil {
		return err
	}
	for rec, err := range rows {
		if err != nil {
			return err
		}
		name, err := textOf(rec[filePathID])
		if err != nil {
			return fmt.Errorf("file_path: %w", err)
		}
		pos, err := numberOf(rec[posID])
		if err != nil {
			return fmt.Errorf("pos: %w", err)
		}
		if pos < 0 {
			return fmt.Errorf("negative position %d: %w", pos, ErrCorrupt)
		}
		if source.Spelling(name) == source.Spelling(path) {
			dead[pos] = true
		}
	}
	return nil
}

// equality is an equality-delete file in memory.
type equality struct {
	ids  []int
	keys [][]any
}

// equalities reads the equality-delete files of a data file.
func (m *Merge) equalities(ctx context.Context, f *snapshot.File) ([]equality, error) {
	var out []equality
	for _, d := range f.Equality {
		if len(d.EqualityIDs) == 0 {
			return nil, fmt.Errorf("%s: equality deletes without fields: %w", d.Path, ErrCorrupt)
		}
		rows, err := m.open(ctx, d, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Path, err)
		}
		p := &projector{table: m.Table, defaults: m.defaults}
		e := equality{ids: d.EqualityIDs}
		for rec, err := range rows {
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.Path, err)
			}
			key, err := p.key(rec, e.ids)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.Path, err)
			}
			e.keys = append(e.keys, key)
		}
		out = append(out, e)
	}
	return out, nil
}

// key reads the key fields of a record.
func (p *projector) key(rec Record, ids []int) ([]any, error) {
	key := make([]any, len(ids))
	for i, id := range ids {
		v, err := p.valueOf(rec, id)
		if err != nil {
			return nil, err
		}
		key[i] = widen(v)
	}
	return key, nil
}

// deletes reports whether any key equals the row's.
func (e *equality) deletes(p *projector, stored Record) (bool, error) {
	row, err := p.key(stored, e.ids)
	if err != nil {
		return false, err
	}
	for _, key := range e.keys {
		equal := true
		for i := range key {
			equal = equal && Equal(key[i], row[i])
		}
		if equal {
			return true, nil
		}
	}
	return false, nil
}
