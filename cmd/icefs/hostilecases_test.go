package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/icefs/icefs/internal/fixture"
	"github.com/icefs/icefs/internal/pqfile"
)

// replace puts a symbolic link in the place of a file or folder.
func (w *hostileWarehouse) replace(path, target string) {
	w.t.Helper()
	w.check(os.RemoveAll(path))
	w.check(os.Symlink(target, path))
}

// lastSnapshot is the newest snapshot in metadata.
func lastSnapshot(m map[string]any) map[string]any {
	list := m["snapshots"].([]any)
	return list[len(list)-1].(map[string]any)
}

// hostilePlaces are tables that name what lies outside, or elsewhere.
func hostilePlaces() []hostile {
	list := func(location func(w *hostileWarehouse) string) func(*hostileWarehouse, string) {
		return edited(func(w *hostileWarehouse, m map[string]any) { lastSnapshot(m)["manifest-list"] = location(w) })
	}
	fixed := func(location string) func(*hostileWarehouse, string) {
		return list(func(*hostileWarehouse) string { return location })
	}
	return []hostile{
		{"list_passwd", fixed("/etc/passwd"), "no such object", ""},
		{"list_passwd_url", fixed("file:///etc/passwd"), "no such object", ""},
		{"list_environ", fixed("/proc/self/environ"), "no such object", ""},
		{"list_zero", fixed("/dev/zero"), "no such object", ""},
		{"list_s3", fixed("s3://bucket/list.avro"), "no such object", ""},
		{"list_http", list(func(w *hostileWarehouse) string { return "http://" + w.store + "/list.avro" }), "no such object", ""},
		{"list_dotdot", list(func(w *hostileWarehouse) string { return w.dir + "/db/plain/../../../outside/secret.json" }), "no such object", ""},
		{"list_secret", list(func(w *hostileWarehouse) string { return "file://" + w.outside + "/secret.json" }), "no such object", ""},
		{"list_empty", fixed(""), "names no manifest list", ""},
		{"location_root", edited(func(w *hostileWarehouse, m map[string]any) {
			m["location"] = "file:///"
			lastSnapshot(m)["manifest-list"] = "file:///" + strings.TrimPrefix(w.outside, "/") + "/t/metadata/none.avro"
			m["properties"] = map[string]any{"write.data.path": "/", "s3.endpoint": "http://" + w.store, "write.metadata.path": "/etc"}
		}), "no such object", ""},
		{"stored_in_s3", func(w *hostileWarehouse, dir string) { // as a table that was moved from there
			w.table(dir, "fine", fixture.Options{Location: "s3://bucket/t", Properties: map[string]string{"s3.endpoint": "http://" + w.store}}, fixture.FileOptions{})
		}, "", ""},
		{"metadata_of_outside", func(w *hostileWarehouse, dir string) {
			w.check(os.MkdirAll(filepath.Join(dir, "metadata"), 0o755))
			for _, name := range must[[]string](w.t)(filepath.Glob(filepath.Join(w.outside, "t", "metadata", "*.json"))) {
				b := must[[]byte](w.t)(os.ReadFile(name))
				w.check(os.WriteFile(filepath.Join(dir, "metadata", filepath.Base(name)), b, 0o644))
			}
		}, "no such object", ""},
		{"linked_metadata", metadataLink(func(w *hostileWarehouse) string { return filepath.Join(w.outside, "secret.json") }), "outside", ""},
		{"linked_passwd", metadataLink(func(*hostileWarehouse) string { return "/etc/passwd" }), "outside", ""},
		{"linked_zero", metadataLink(func(*hostileWarehouse) string { return "/dev/zero" }), "outside", ""},
		{"linked_above", metadataLink(func(*hostileWarehouse) string { return "../../../../outside/secret.json" }), "outside", ""},
		{"pipe", func(w *hostileWarehouse, dir string) {
			w.check(os.MkdirAll(filepath.Join(dir, "metadata"), 0o755))
			w.check(syscall.Mkfifo(filepath.Join(dir, "metadata", "v1.metadata.json"), 0o644))
		}, "not a regular file", ""},
		{"hint_outside", func(w *hostileWarehouse, dir string) {
			fine(w, dir)
			w.check(os.WriteFile(filepath.Join(dir, "metadata", "version-hint.text"), []byte("../../../../outside/t/metadata/v3"), 0o644))
		}, "", ""},
		{"linked_data", func(w *hostileWarehouse, dir string) {
			_, data, _ := w.table(dir, "fine", fixture.Options{}, fixture.FileOptions{})
			w.replace(data.Local, filepath.Join(w.outside, "t", "data", "f.parquet"))
		}, "outside", ""},
		{"linked_data_folder", func(w *hostileWarehouse, dir string) {
			w.table(dir, "fine", fixture.Options{}, fixture.FileOptions{Name: "f.parquet"})
			w.replace(filepath.Join(dir, "data"), filepath.Join(w.outside, "t", "data"))
		}, "outside", ""},
		{"linked_deletes", func(w *hostileWarehouse, dir string) {
			_, _, deleted := w.table(dir, "fine", fixture.Options{}, fixture.FileOptions{})
			w.replace(deleted.Local, filepath.Join(w.outside, "t", "data", "f.parquet"))
		}, "outside", ""},
		{"data_dotdot", func(w *hostileWarehouse, dir string) {
			w.table(dir, secret, fixture.Options{}, fixture.FileOptions{Name: "../../../../outside/evil.parquet"})
		}, "outside", ""},
	}
}

// metadataLink returns a maker of a table whose metadata file is a link.
func metadataLink(target func(w *hostileWarehouse) string) func(*hostileWarehouse, string) {
	return func(w *hostileWarehouse, dir string) {
		fine(w, dir)
		for _, name := range must[[]string](w.t)(filepath.Glob(filepath.Join(dir, "metadata", "*.json"))) {
			w.replace(name, target(w))
		}
	}
}

// hostileMetadata are tables whose metadata files are too much.
func hostileMetadata() []hostile {
	schema := func(open, end string, depth int) func(*hostileWarehouse, string) []byte {
		return func(_ *hostileWarehouse, dir string) []byte {
			var s strings.Builder
			s.WriteString(`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":`)
			for i := range depth {
				fmt.Fprintf(&s, open, i+2)
			}
			s.WriteString(`"long"` + strings.Repeat(end, depth) + "}]}")
			return []byte(document(dir, s.String(), ""))
		}
	}
	const structs, structsEnd = `{"type":"struct","fields":[{"id":%d,"name":"n","required":false,"type":`, "}]}"
	const lists, listsEnd = `{"type":"list","element-id":%d,"element-required":false,"element":`, "}"
	more := func(text func() string) func(*hostileWarehouse, string) []byte {
		return func(_ *hostileWarehouse, dir string) []byte { return []byte(document(dir, twoColumns, text())) }
	}
	repeated := func(before, piece, after string, n int) func(*hostileWarehouse, string) {
		return metadata("v1.metadata.json", more(func() string { return before + strings.Repeat(piece, n) + after }))
	}
	list := []hostile{
		{"gzip_bomb", metadata("v1.gz.metadata.json", func(w *hostileWarehouse, _ string) []byte { return w.bombs.gzip }), "more than 64 MiB", ""},
		{"zstd_bomb", metadata("v1.zstd.metadata.json", func(w *hostileWarehouse, _ string) []byte { return w.bombs.zstd }), "more than 64 MiB", ""},
		{"sparse_metadata", func(w *hostileWarehouse, dir string) {
			metadata("v1.metadata.json", more(func() string { return "" }))(w, dir)
			w.check(os.Truncate(filepath.Join(dir, "metadata", "v1.metadata.json"), 3<<30))
		}, "more than 64 MiB", ""},
		{"deep_structs", metadata("v1.metadata.json", schema(structs, structsEnd, 10_000)), "nested deeper", ""},
		{"deep_lists", metadata("v1.metadata.json", schema(lists, listsEnd, 10_000)), "nested deeper", ""},
		{"deep_arrays", repeated(`,"x":`, "[", "", 20<<20), "nested deeper", ""},
		{"deep_objects", repeated(`,"x":`, `{"a":`, "", 4<<20), "nested deeper", ""},
		{"long_schema", metadata("v1.metadata.json", func(_ *hostileWarehouse, dir string) []byte {
			deep := strings.Replace(string(schema(structs, structsEnd, 150)(nil, dir)), `"name":"id"`, `"name":"id","doc":"`+strings.Repeat("x", 12<<20)+`"`, 1)
			return []byte(deep)
		}), "nested", ""},
		{name: "many_properties", make: repeated(`,"properties":{"a":"b"`, `,"a":"b"`, "}", 4<<20), csv: "id,s\n"},
		{"many_snapshots", repeated(`,"snapshots":[{}`, ",{}", "]", 10<<20), "more than 1048576 snapshots", ""},
		{"many_log_entries", repeated(`,"snapshot-log":[{}`, ",{}", "]", 10<<20), "more than 1048576", ""},
		{name: "many_keys", make: repeated(`,"encryption-keys":[1`, ",1", "]", 20<<20), csv: "id,s\n"},
		{"not_json", metadata("v1.metadata.json", func(*hostileWarehouse, string) []byte { return []byte("root:x:0:0:\n") }), "malformed", ""},
	}
	for i := range 2 {
		gzipped := func(text func(dir string) string) func(*hostileWarehouse, string) {
			return metadata("v1.gz.metadata.json", func(w *hostileWarehouse, dir string) []byte { return gzipOf(w.t, text(dir)) })
		}
		list = append(list,
			hostile{fmt.Sprint("much_space_", i), gzipped(func(dir string) string {
				return document(dir, twoColumns, `,"x":"`+strings.Repeat(" ", 60<<20)+`"`)
			}), "", "id,s\n"},
			hostile{fmt.Sprint("much_nonsense_", i), gzipped(func(string) string { return "nonsense" + strings.Repeat("x", 60<<20) }), "malformed", ""})
	}
	return list
}

// wideTables are what is wide, but not wrong.
func wideTables() []hostile {
	return []hostile{
		{name: "wide_schema", make: wideSchema, csv: "id,s,c3,c4,"},
		{name: "wide_footer", make: func(w *hostileWarehouse, dir string) {
			_, data, _ := w.table(dir, "fine", fixture.Options{}, fixture.FileOptions{})
			wideFooter(w.t, data.Local)
		}},
	}
}

// wideSchema makes a table of 100,000 columns, of which its file has two.
func wideSchema(w *hostileWarehouse, dir string) {
	edited(func(_ *hostileWarehouse, m map[string]any) {
		s := m["schemas"].([]any)[0].(map[string]any)
		fields := s["fields"].([]any)
		for id := 3; id <= 100_000; id++ {
			fields = append(fields, map[string]any{"id": id, "name": fmt.Sprint("c", id), "required": false, "type": "string"})
		}
		wide := map[string]any{"type": "struct", "schema-id": 1, "fields": fields}
		m["schemas"], m["current-schema-id"], m["last-column-id"] = []any{s, wide}, 1, 100_000
	})(w, dir)
}

// hostileManifests are tables whose manifests, or lists of them, are too much.
func hostileManifests() (list []hostile) {
	for kind, pattern := range map[string]string{"list": "metadata/snap-*.avro", "manifest": "metadata/*-m0.avro"} {
		one := func(set func(w *hostileWarehouse, path string)) func(*hostileWarehouse, string) {
			return func(w *hostileWarehouse, dir string) {
				tab := fixture.New(dir, fixture.Options{Schema: hostileSchema()})
				tx := tab.Begin()
				tx.Append(rowsOf("fine")...)
				tx.Commit()
				w.check(tab.Err())
				set(w, oneFile(w.t, dir, pattern))
			}
		}
		block := func(codec string, rows int64, claim int, body func(b *bombs) []byte) func(*hostileWarehouse, string) {
			return one(func(w *hostileWarehouse, path string) {
				stored := body(w.bombs)
				setBlock(w.t, path, codec, rows, len(stored)+claim, stored)
			})
		}
		list = append(list,
			hostile{kind + "_deflate", block("deflate", 1, 0, func(b *bombs) []byte { return b.deflate }), "over 67108864 bytes", ""},
			hostile{kind + "_zstd", block("zstandard", 1, 0, func(b *bombs) []byte { return b.zstd }), "decompressed size exceeds", ""},
			hostile{kind + "_snappy", block("snappy", 1, 0, func(*bombs) []byte { return []byte("\xff\xff\xff\xff\x07\x00xxxx") }), "over 67108864 bytes", ""},
			hostile{kind + "_claim", block("null", 1, 2<<30, func(*bombs) []byte { return []byte("x") }), "block of 2147483649 bytes", ""},
			hostile{kind + "_rows", block("null", math.MaxInt64, 0, func(*bombs) []byte { return []byte("x") }), "rows in 1 bytes", ""},
			hostile{kind + "_deep", one(func(w *hostileWarehouse, path string) {
				a := avroOf(w.t, path)
				deep := strings.Repeat(`{"type":"array","items":`, 9_000) + `"int"` + strings.Repeat("}", 9_000)
				setSchema(w.t, path, a, deep)
			}), "schema", ""},
			hostile{kind + "_long_schema", one(func(w *hostileWarehouse, path string) {
				a := avroOf(w.t, path)
				setSchema(w.t, path, a, `{"type":"int","doc":"`+strings.Repeat("x", 40<<20)+`"}`)
			}), "schema", ""})
	}
	return list
}

// hostileFiles are tables whose data or delete files are too much.
func hostileFiles() []hostile {
	data := func(harm func(w *hostileWarehouse, path string)) func(*hostileWarehouse, string) {
		return func(w *hostileWarehouse, dir string) {
			_, data, _ := w.table(dir, "fine", fixture.Options{}, fixture.FileOptions{})
			harm(w, data.Local)
		}
	}
	positions := func(harm func(w *hostileWarehouse, path string)) func(*hostileWarehouse, string) {
		return func(w *hostileWarehouse, dir string) {
			_, _, deleted := w.table(dir, "fine", fixture.Options{}, fixture.FileOptions{})
			harm(w, deleted.Local)
		}
	}
	list := []hostile{
		{"footer_2g", data(func(w *hostileWarehouse, path string) { claimFooter(w.t, path, math.MaxInt32, false) }), "footer", ""},
		{"footer_4g", data(func(w *hostileWarehouse, path string) { claimFooter(w.t, path, math.MaxUint32, false) }), "footer", ""},
		{"footer_hole", data(func(w *hostileWarehouse, path string) { claimFooter(w.t, path, 3<<29, true) }), "footer", ""},
		{"footer_hole_30m", data(func(w *hostileWarehouse, path string) { claimFooter(w.t, path, 30<<20, true) }), "corrupt Parquet file", ""},
		{"footer_deep", data(func(w *hostileWarehouse, path string) { deepFooter(w.t, path) }), "deeper than 200", ""},
		{"values_2g", data(func(w *hostileWarehouse, path string) {
			setPage(w.t, path, 1, pqfile.Uncompressed, 10, make([]byte, 10), math.MaxInt32)
		}), "2147483647 values", ""},
		{"values_128m", data(func(w *hostileWarehouse, path string) {
			setPage(w.t, path, 1, pqfile.Uncompressed, 10, make([]byte, 10), 1<<27)
		}), "values", ""},
		{"eq_page", equalityFile(nil, func(w *hostileWarehouse, path string) {
			setPage(w.t, path, 0, pqfile.Zstd, 100, w.bombs.zstd, 0)
		}), "corrupt", ""},
		{"eq_avro", equalityFile(&fixture.AvroOptions{}, func(w *hostileWarehouse, path string) {
			setBlock(w.t, path, "deflate", 1, len(w.bombs.deflate), w.bombs.deflate)
		}), "corrupt", ""},
	}
	for codec, name := range map[pqfile.Codec]string{
		pqfile.Zstd: "zstd", pqfile.Gzip: "gzip", pqfile.Brotli: "brotli", pqfile.Snappy: "snappy", pqfile.LZ4Raw: "lz4",
	} {
		small := func(w *hostileWarehouse, path string) { setPage(w.t, path, 1, codec, 100, w.bombs.page[codec], 0) }
		claim := func(w *hostileWarehouse, path string) {
			setPage(w.t, path, 1, codec, math.MaxInt32, w.bombs.page[codec], 0)
		}
		list = append(list,
			hostile{"page_" + name, data(small), "corrupt", ""},
			hostile{"page_2g_" + name, data(claim), "a page takes", ""},
			hostile{"positions_" + name, positions(small), "corrupt", ""},
			hostile{"positions_2g_" + name, positions(claim), "a page takes", ""})
	}
	for _, codec := range []string{"deflate", "zstandard", "snappy"} {
		body := func(w *hostileWarehouse) []byte {
			return map[string][]byte{"deflate": w.bombs.deflate, "zstandard": w.bombs.zstd, "snappy": []byte("\xff\xff\xff\xff\x07\x00xxxx")}[codec]
		}
		list = append(list,
			hostile{"avro_data_" + codec, func(w *hostileWarehouse, dir string) {
				_, data, _ := w.table(dir, "fine", fixture.Options{}, fixture.FileOptions{Avro: &fixture.AvroOptions{}})
				setBlock(w.t, data.Local, codec, 4, len(body(w)), body(w))
			}, "corrupt", ""},
			hostile{"avro_positions_" + codec, avroPositions(func(w *hostileWarehouse, path string) {
				setBlock(w.t, path, codec, 1, len(body(w)), body(w))
			}), "corrupt", ""})
	}
	return append(list, hostile{"avro_claim", func(w *hostileWarehouse, dir string) {
		_, data, _ := w.table(dir, "fine", fixture.Options{}, fixture.FileOptions{Avro: &fixture.AvroOptions{}})
		setBlock(w.t, data.Local, "null", 4, 2<<30, []byte("x"))
	}, "corrupt", ""}, hostile{"avro_deep", func(w *hostileWarehouse, dir string) {
		_, data, _ := w.table(dir, "fine", fixture.Options{}, fixture.FileOptions{Avro: &fixture.AvroOptions{}})
		deep := strings.Repeat(`{"type":"array","items":`, 9_000) + `"int"` + strings.Repeat("}", 9_000)
		setSchema(w.t, data.Local, avroOf(w.t, data.Local), deep)
	}, "schema", ""})
}

// equalityFile returns a maker of a table with an equality-delete file.
func equalityFile(avro *fixture.AvroOptions, harm func(w *hostileWarehouse, path string)) func(*hostileWarehouse, string) {
	return deleteFile(harm, func(tx *fixture.Tx, _ *fixture.File) *fixture.File {
		return tx.DeleteEqualFile(fixture.EqualityOptions{IDs: []int{1}, Avro: avro, Parquet: &fixture.ParquetOptions{NoDictionary: true}}, fixture.Row{"id": 2})
	})
}

// avroPositions returns a maker of a table with a position-delete file in Avro.
func avroPositions(harm func(w *hostileWarehouse, path string)) func(*hostileWarehouse, string) {
	return deleteFile(harm, func(tx *fixture.Tx, data *fixture.File) *fixture.File {
		return tx.DeletePositionsFile(fixture.PositionOptions{Avro: &fixture.AvroOptions{}}, fixture.Position{File: data, Pos: 1})
	})
}

func deleteFile(harm func(w *hostileWarehouse, path string), add func(tx *fixture.Tx, data *fixture.File) *fixture.File) func(*hostileWarehouse, string) {
	return func(w *hostileWarehouse, dir string) {
		tab := fixture.New(dir, fixture.Options{Schema: hostileSchema()})
		tx := tab.Begin()
		data := tx.Append(rowsOf("fine")...)
		tx.Commit()
		tx = tab.Begin()
		deleted := add(tx, data)
		tx.Commit()
		w.check(tab.Err())
		harm(w, deleted.Local)
	}
}
