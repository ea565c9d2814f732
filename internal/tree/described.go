package tree

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"

	"github.com/icefs/icefs/merge"
	"github.com/icefs/icefs/snapshot"
)

// describedFile is schema.json or snapshot.json: a part of the metadata.
type describedFile struct {
	dir   *snapshotDir
	name  string
	text  func(ctx context.Context) ([]byte, error)
	first first
}

var _ File = (*describedFile)(nil)

func (f *describedFile) content(ctx context.Context) ([]byte, snapshot.ID, error) {
	b, err := f.text(ctx)
	if err != nil {
		return nil, snapshot.ID{}, f.dir.fail(ctx, err)
	}
	id := f.dir.place.id("file", f.dir.id().String(), f.name, string(b))
	return b, id, f.first.is(id)
}

func (f *describedFile) Attr(ctx context.Context) (Attr, error) {
	_, id, err := f.content(ctx)
	return f.dir.attr(KindFile, id), err
}

func (f *describedFile) Size(ctx context.Context) (int64, error) {
	b, _, err := f.content(ctx)
	return int64(len(b)), err
}

func (f *describedFile) Open(ctx context.Context) (merge.Handle, error) {
	b, _, err := f.content(ctx)
	if err != nil {
		return nil, err
	}
	return newBytesHandle(b), nil
}

func (d *snapshotDir) snapshotJSON(ctx context.Context) ([]byte, error) {
	_, s, err := d.find(ctx)
	if err != nil {
		return nil, err
	}
	return line(s.JSON), nil
}

func (d *snapshotDir) schemaJSON(ctx context.Context) ([]byte, error) {
	id, err := d.schemaID(ctx)
	if err != nil {
		return nil, err
	}
	t, err := d.load(ctx)
	if err != nil {
		return nil, err
	}
	return t.schemaJSON(id)
}

// line ends a text with a newline.
func line(b []byte) []byte {
	if bytes.HasSuffix(b, []byte("\n")) {
		return b
	}
	return append(bytes.Clone(b), '\n')
}

// schemaJSON is a schema as the metadata spells it.
func (t *table) schemaJSON(id int) ([]byte, error) {
	t.schemasOnce.Do(func() { t.schemas = rawSchemas(t.meta.Metadata) })
	if raw, ok := t.schemas[id]; ok {
		return line(raw), nil
	}
	s := t.meta.Schema(id)
	if s == nil {
		return nil, errNoEntry
	}
	b, err := json.Marshal(s)
	return line(b), err
}

// rawSchemas cuts the schemas out of table metadata; the one of format version 1
// ("schema") where it has no list.
func rawSchemas(metadata []byte) map[int][]byte {
	var m struct {
		Schemas []json.RawMessage `json:"schemas"`
		Schema  json.RawMessage   `json:"schema"`
	}
	if json.Unmarshal(metadata, &m) != nil {
		return nil
	}
	if len(m.Schemas) == 0 && m.Schema != nil {
		m.Schemas = []json.RawMessage{m.Schema}
	}
	byID := make(map[int][]byte, len(m.Schemas))
	for _, raw := range m.Schemas {
		var s struct {
			ID int `json:"schema-id"`
		}
		if json.Unmarshal(raw, &s) == nil {
			byID[s.ID] = raw
		}
	}
	return byID
}

// filesFile is files.csv: the live data files, from manifests alone. It is made
// anew for each reader; only its size is kept.
type filesFile struct {
	dir   *snapshotDir
	first first
}

var _ File = (*filesFile)(nil)

func (f *filesFile) plan(ctx context.Context) (*planned, snapshot.ID, error) {
	p, err := f.dir.plan(ctx)
	if err != nil {
		return nil, snapshot.ID{}, f.dir.fail(ctx, err)
	}
	sum := p.digest()
	id := f.dir.place.id("file", f.dir.id().String(), nameFiles, string(sum[:]))
	return p, id, f.first.is(id)
}

func (f *filesFile) Attr(ctx context.Context) (Attr, error) {
	_, id, err := f.plan(ctx)
	return f.dir.attr(KindFile, id), err
}

func (f *filesFile) Size(ctx context.Context) (int64, error) {
	p, _, err := f.plan(ctx)
	if err != nil {
		return 0, err
	}
	p.filesOnce.Do(func() {
		var n counter
		writeFiles(&n, p.scan.Plan) // a counter never fails
		p.filesSize = int64(n)
	})
	return p.filesSize, nil
}

func (f *filesFile) Open(ctx context.Context) (merge.Handle, error) {
	p, _, err := f.plan(ctx)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	writeFiles(&b, p.scan.Plan)
	return newBytesHandle(b.Bytes()), nil
}

// counter is a writer that counts.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// writeFiles writes files.csv: delete_files counts the position and equality
// delete files and the deletion vector that apply to a data file.
func writeFiles(w io.Writer, plan *snapshot.Plan) {
	out := csv.NewWriter(w)
	defer out.Flush()
	out.Write([]string{"path", "format", "records", "sequence_number", "spec_id", "delete_files", "dv_cardinality"})
	for i := range plan.Files {
		f := &plan.Files[i]
		deletes, dv := len(f.Positions)+len(f.Equality), ""
		if f.DV != nil {
			deletes++
			dv = decimal(f.DV.Records)
		}
		out.Write([]string{f.Path, string(f.Format), decimal(f.Records), decimal(f.Sequence),
			strconv.Itoa(f.SpecID), strconv.Itoa(deletes), dv})
	}
}
