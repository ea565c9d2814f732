package warehouse

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/icefs/icefs/internal/source"
)

func TestParseMetadataName(t *testing.T) {
	const uuid = "d1e6fdf7-cd1a-48bb-b378-2c0a2e8fb981"
	for _, c := range []struct {
		name   string
		number int64
		hadoop bool
		ok     bool
	}{
		{"v3.metadata.json", 3, true, true},
		{"v10.gz.metadata.json", 10, true, true},
		{"v10.metadata.json.gz", 10, true, true},
		{"v10.zstd.metadata.json", 10, true, true},
		{"00018-" + uuid + ".metadata.json", 18, false, true},
		{"00018-" + uuid + ".gz.metadata.json", 18, false, true},
		{"00018-" + uuid + ".metadata.json.gz", 18, false, true},
		{"v00001-" + uuid + ".metadata.json", 1, false, true},
		{"00002-not_a_uuid.metadata.json", 2, false, true},
		{"100000-x.metadata.json", 100000, false, true},
		{uuid + ".metadata.json", -1, false, true},
		{"12345678-cd1a-48bb-b378-2c0a2e8fb981.metadata.json", -1, false, true},
		{"table.metadata.json", -1, false, true},
		{"99999999999999999999.metadata.json", -1, false, true},
		{".v3.metadata.json.crc", 0, false, false},
		{".v3.metadata.json", 0, false, false},
		{"v3.metadata.json.crc", 0, false, false},
		{"v3.metadata.json.tmp", 0, false, false},
		{"metadata.json", 0, false, false},
		{"version-hint.text", 0, false, false},
		{"snap-1.avro", 0, false, false},
	} {
		m, ok := parseMetadataName(c.name)
		if ok != c.ok || ok && (m.number != c.number || m.hadoop != c.hadoop) {
			t.Errorf("%s: %+v, %v", c.name, m, ok)
		}
	}
}

// versionFile is minimal metadata of a table (by uuid) at a time.
func versionFile(uuid string, updated int64) string {
	return fmt.Sprintf(`{"format-version":2,"table-uuid":"%s","location":"/t","last-sequence-number":0,"last-updated-ms":%d,`+
		`"schemas":[{"type":"struct","schema-id":0,"fields":[]}],"current-schema-id":0,"partition-specs":[{"spec-id":0,"fields":[]}]}`, uuid, updated)
}

func TestCurrentMetadata(t *testing.T) {
	const minute = 60_000
	for _, c := range []struct {
		name  string
		hint  string
		files map[string]string
		want  string
		log   string
	}{
		{"numbers are numbers", "", map[string]string{
			"v9.metadata.json": versionFile("a", 9), "v10.metadata.json": versionFile("a", 10),
		}, "v10.metadata.json", ""},
		{"numbers with uuids", "", map[string]string{
			"00009-x.metadata.json": versionFile("a", 9), "00010-y.metadata.json": versionFile("a", 10),
		}, "00010-y.metadata.json", ""},
		{"compressed spellings", "", map[string]string{
			"00001-x.metadata.json": versionFile("a", 1), "00002-x.gz.metadata.json": "gz:" + versionFile("a", 2),
			"00003-x.metadata.json.gz": "gz:" + versionFile("a", 3),
		}, "00003-x.metadata.json.gz", ""},
		{"hint, then forward", "2", map[string]string{
			"v1.metadata.json": versionFile("a", 1), "v2.metadata.json": versionFile("a", 2),
			"v3.gz.metadata.json": "gz:" + versionFile("a", 3), "v4.metadata.json.gz": "gz:" + versionFile("a", 4),
			"v6.metadata.json": versionFile("a", 6),
		}, "v4.metadata.json.gz", ""},
		{"stale hint", "7", map[string]string{
			"v1.metadata.json": versionFile("a", 1), "v2.metadata.json": versionFile("a", 2),
		}, "v2.metadata.json", ""},
		{"hint that is no number", "\x00\xff", map[string]string{"v1.metadata.json": versionFile("a", 1)}, "v1.metadata.json", ""},
		{"empty hint", "", map[string]string{"v1.metadata.json": versionFile("a", 1), "version-hint.text": ""}, "v1.metadata.json", ""},
		{"huge hint", strings.Repeat("1", maxHint+1), map[string]string{"v1.metadata.json": versionFile("a", 1)}, "v1.metadata.json", ""},
		{"hint of a uuid name", "1\n", map[string]string{
			"00001-x.metadata.json": versionFile("a", 1), "00003-z.metadata.json": versionFile("a", 3),
		}, "00001-x.metadata.json", ""},
		{"hint is a stem", "00001-x", map[string]string{
			"00001-x.metadata.json": versionFile("a", 1), "00002-y.metadata.json": versionFile("a", 2),
			"00004-z.metadata.json": versionFile("a", 4),
		}, "00002-y.metadata.json", ""},
		{"hint is a file name", "00001-x.metadata.json", map[string]string{
			"00001-x.metadata.json": versionFile("a", 1), "00003-z.metadata.json": versionFile("a", 3),
		}, "00001-x.metadata.json", ""},
		{"created again", "", map[string]string{
			"00000-o.metadata.json": versionFile("a", 1000), "00005-o.metadata.json": versionFile("a", 5000),
			"00001-n.metadata.json": versionFile("b", 6000), "00000-n.metadata.json": versionFile("b", 5500),
		}, "00001-n.metadata.json", "created again"},
		{"created again with the uuid kept", "", map[string]string{
			"v5.metadata.json": versionFile("a", 5*minute), "v1.metadata.json": versionFile("a", 9*minute),
		}, "v1.metadata.json", "created again"},
		{"clocks apart", "", map[string]string{
			"00005-x.metadata.json": versionFile("a", 5*minute), "00004-x.metadata.json": versionFile("a", 5*minute+30_000),
		}, "00005-x.metadata.json", ""},
		{"several of one number", "", map[string]string{
			"00001-a.metadata.json": versionFile("a", 7), "00001-b.metadata.json": versionFile("b", 9),
			"00001-c.metadata.json": versionFile("c", 8),
		}, "00001-b.metadata.json", "several metadata files"},
		{"a true tie", "", map[string]string{
			"00001-a.metadata.json": versionFile("a", 7), "00001-b.metadata.json": versionFile("b", 7),
		}, "00001-b.metadata.json", "several metadata files"},
		{"not renamed yet", "", map[string]string{
			"v1.metadata.json": versionFile("a", 1), "12345678-cd1a-48bb-b378-2c0a2e8fb981.metadata.json": versionFile("a", 2*minute),
		}, "v1.metadata.json", ""},
		{"without any number", "", map[string]string{"t.metadata.json": versionFile("a", 1)}, "t.metadata.json", ""},
		{"older files that are broken", "", map[string]string{
			"00002-x.metadata.json": versionFile("a", 2), "00001-x.metadata.json": "{", "00000-x.metadata.json": "",
		}, "00002-x.metadata.json", ""},
		{"the newest is broken", "", map[string]string{
			"00002-x.metadata.json": "{", "00001-x.metadata.json": versionFile("a", 1),
		}, "00002-x.metadata.json", ""},
		{"side files", "", map[string]string{
			"v1.metadata.json": versionFile("a", 1), ".v1.metadata.json.crc": "crc", ".version-hint.text.crc": "crc",
		}, "v1.metadata.json", ""},
	} {
		dir := filepath.Join(t.TempDir(), "metadata")
		for name, content := range c.files {
			if plain, ok := strings.CutPrefix(content, "gz:"); ok {
				content = compressed(plain)
			}
			write(t, filepath.Join(dir, name), content)
		}
		if c.hint != "" {
			write(t, filepath.Join(dir, hintName), c.hint)
		}
		var log logBuffer
		e, err := newEnv(Options{Log: log.logger()}, filepath.Dir(dir))
		if err != nil {
			t.Fatal(err)
		}
		f := newFolderTable(e, dir)
		for range 2 {
			got, err := f.locate(context.Background())
			if err != nil || filepath.Base(got) != c.want {
				t.Errorf("%s: %s, %v, want %s", c.name, filepath.Base(got), err, c.want)
			}
		}
		lines := log.lines()
		if c.log == "" && len(lines) != 0 || c.log != "" && (len(lines) != 1 || !strings.Contains(lines[0], c.log)) {
			t.Errorf("%s: logged %q, want %q once", c.name, lines, c.log)
		}
	}
}

func compressed(plain string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(plain))
	w.Close()
	return b.String()
}

func TestCompressionIsToldByContent(t *testing.T) {
	plain := versionFile("a", 1)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"plain":                   plain,
		"gzip under a plain name": compressed(plain),
		"zstd":                    string(encoder.EncodeAll([]byte(plain), nil)),
		"gzip of several members": compressed(plain[:10]) + compressed(plain[10:]),
	} {
		path := write(t, filepath.Join(t.TempDir(), "v1.metadata.json"), content)
		table := openTable(t, path, Options{})
		raw, err := table.RawMetadata(context.Background())
		if err != nil || string(raw) != plain {
			t.Errorf("%s: %q, %v", name, raw, err)
		}
		if l := load(t, table); l.Table().UUID != "a" || string(l.Table().Metadata) != plain {
			t.Errorf("%s: %+v", name, l.Table())
		}
	}
	cut := compressed(plain)
	path := write(t, filepath.Join(t.TempDir(), "v1.metadata.json"), cut[:len(cut)-9])
	if _, err := openTable(t, path, Options{}).Load(context.Background()); !errors.Is(err, ErrCorrupt) {
		t.Errorf("cut gzip: %v", err)
	}
}

func TestHeadsAreReadOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "metadata")
	for i := range 5 {
		write(t, filepath.Join(dir, fmt.Sprintf("%05d-x.metadata.json", i)), versionFile("a", int64(i)))
	}
	e, err := newEnv(Options{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	f := newFolderTable(e, dir)
	if _, err := f.locate(context.Background()); err != nil || len(f.heads) != 5 {
		t.Fatalf("%d heads kept, %v", len(f.heads), err)
	}
	for version := range f.heads {
		f.heads[version] = head{LastUpdated: 99, UUID: "kept"}
	}
	if err := os.Remove(filepath.Join(dir, "00000-x.metadata.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.locate(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(f.heads) != 4 {
		t.Errorf("%d heads kept of 4 files", len(f.heads))
	}
	for _, h := range f.heads {
		if h.UUID != "kept" {
			t.Error("a head was read again")
		}
	}
}

func TestTableWithoutMetadataIsGone(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "t", "metadata", "v1.metadata.json"), versionFile("a", 1))
	table := openTable(t, filepath.Join(dir, "t"), Options{Refresh: -1})
	load(t, table)
	if err := os.Remove(filepath.Join(dir, "t", "metadata", "v1.metadata.json")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := table.Load(context.Background()); !errors.Is(err, ErrGone) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without a metadata file: %v", err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "t")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnreadableMetadataIsAnError: what cannot be read might tell of a newer
// version. A folder stands for a file that the disk does not give.
func TestUnreadableMetadataIsAnError(t *testing.T) {
	for _, name := range []string{"version-hint.text", "v1.metadata.json", "v2.metadata.json"} {
		dir := filepath.Join(t.TempDir(), "metadata")
		for i := range 3 {
			write(t, filepath.Join(dir, fmt.Sprintf("v%d.metadata.json", i)), versionFile("a", int64(i)))
		}
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		e, err := newEnv(Options{}, dir)
		if err != nil {
			t.Fatal(err)
		}
		if at, err := newFolderTable(e, dir).locate(context.Background()); !errors.Is(err, source.ErrRead) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s cannot be read: %s is current, %v", name, at, err)
		}
	}
}
