package warehouse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/twmb/avro/ocf"

	"github.com/icefs/icefs/snapshot"
)

// blockEnds are the offsets at which an Avro file can be cut and still looks
// whole: that of the first block, and those after each.
func blockEnds(t *testing.T, raw string) []int {
	t.Helper()
	c, err := openContainer([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for ends := []int{}; ; {
		ends = append(ends, len(raw)-len(c.rest))
		if _, _, err := c.next(); err == io.EOF {
			return ends
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestCutManifests cuts manifests after each block: what is left is an error,
// not a table with fewer rows, or without some of its deletes.
func TestCutManifests(t *testing.T) {
	data, deletes := []record{}, []record{}
	for i := range 7 {
		status, sequence := 1, any(nil)
		if i > 3 {
			status, sequence = 0, int64(2)
		}
		data = append(data, entryOf(status, fmt.Sprint("data ", i), "sequence_number", sequence))
		deletes = append(deletes, entryOf(status, fmt.Sprint("deletes ", i), "sequence_number", sequence, "content", 1))
	}
	data = append(data, entryOf(2, "removed"))
	counts := record{"added_files_count": 4, "existing_files_count": 3, "added_rows_count": int64(40), "existing_rows_count": int64(30)}
	for content, entries := range map[string][]record{"data": data, "deletes": deletes} {
		for name, opt := range map[string]ocf.WriterOpt{"deflate": ocf.WithCodec(ocf.DeflateCodec(6)), "null": ocf.WithBlockCount(3)} {
			raw := avroFileWith(t, fmt.Sprintf(entryFields, ""), v2Meta(content), []ocf.WriterOpt{opt, ocf.WithBlockCount(3)}, entries...)
			ends := blockEnds(t, raw)
			if len(ends) != 4 {
				t.Fatalf("%d blocks", len(ends)-1)
			}
			for i, end := range ends {
				list := record{"manifest_length": int64(len(raw))}
				for key, value := range counts {
					list[key] = value
				}
				if content == "deletes" {
					list["content"] = 1
				}
				plan, err := planOf(t, tableOf(t, nil, testManifest{raw: raw[:end], list: list}))
				if i == len(ends)-1 {
					if err != nil || content == "data" && len(plan.Files) != 7 {
						t.Errorf("%s, %s, whole: %v", content, name, err)
					}
				} else if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "the manifest list says 7 of 70") {
					t.Errorf("%s, %s, %d of 3 blocks: %v", content, name, i, err)
				}
			}
		}
	}
}

// TestCheckWhole: what a list says of a manifest with 3 live files of 30 rows in
// 100 bytes.
func TestCheckWhole(t *testing.T) {
	found := &manifest{files: make([]snapshot.DataFile, 3), rows: 30}
	for _, c := range []struct {
		version             int
		length, files, rows int64
		fail                bool
	}{
		{2, 100, 3, 30, false},
		{2, 100, 4, 40, true}, {3, 100, 4, 40, true},
		{2, 0, 4, 40, true},         // whatever the size
		{2, 200, 3, 30, false},      // nothing is missing
		{2, 100, 1, 1_000, false},   // a writer that stated 1 file and the commit's rows for every manifest
		{2, 100, 3, 1_000, false},   // all files are there
		{2, 100, -1, 31, true},      // no files counted: rows count
		{2, 100, -1, 30, false},     //
		{2, 100, -1, -1, false},     // nothing counted
		{2, 101, -1, -1, true},      // nothing counted, and bytes are missing
		{1, 100, 90, 30, false},     // all bytes are there, so that the list is wrong
		{1, 101, 90, 30, true},      //
		{1, 101, 3, 30, false},      //
		{1, -1, -1, -1, false},      // listed by the snapshot itself
		{1, 50, -1, 1_000, false},   //
		{1, 1_000, -1, -1, true},    //
		{1, 1_000, -1, 1_000, true}, //
	} {
		m := manifestFile{path: "m", version: c.version, length: c.length, files: c.files, rows: c.rows}
		if err := m.checkWhole(found, 100); (err != nil) != c.fail || c.fail && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestListsOfOneManifest: what one list says is not taken for what another does.
func TestListsOfOneManifest(t *testing.T) {
	entries := []record{entryOf(1, "a"), entryOf(1, "b")}
	l := load(t, openTable(t, tableOf(t, nil, testManifest{meta: v2Meta("data"), entries: entries}), Options{}))
	list, err := l.manifests(t.Context(), &l.table.Snapshots[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range []int64{2, 3, 1, 3} {
		list[0].files = files
		if _, _, err := l.readManifests(t.Context(), list, nil); (err != nil) != (files > 2) {
			t.Errorf("%d files listed: %v", files, err)
		}
	}
}

// TestBlockCounts: a block that states more or fewer rows than it has.
func TestBlockCounts(t *testing.T) {
	raw := []byte(avroFile(t, fmt.Sprintf(entryFields, ""), v2Meta("data"), entryOf(1, "a"), entryOf(1, "b"), entryOf(1, "c")))
	count := blockEnds(t, string(raw))[0]
	if raw[count] != 3<<1 {
		t.Fatalf("count %d", raw[count])
	}
	for rows, want := range map[byte]string{0: "do not end with their block", 2: "do not end with their block", 3: "", 4: "ends early", 60: "ends early"} {
		changed := bytes.Clone(raw)
		changed[count] = rows << 1
		files, err := planFiles(t, string(changed))
		if want == "" && (err != nil || len(files) != 3) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d rows: %d files, %v", rows, len(files), err)
		}
	}
}
