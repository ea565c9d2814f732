package pqfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

func lz4Block(t testing.TB, b []byte) []byte {
	t.Helper()
	out := make([]byte, lz4.CompressBlockBound(len(b)))
	n, err := lz4.CompressBlock(b, out, nil)
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	return out[:n]
}

func gzipOf(t testing.TB, members ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, m := range members {
		w := gzip.NewWriter(&out)
		w.Write(m)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func compress(t testing.TB, c Codec, b []byte) []byte {
	t.Helper()
	switch c {
	case Uncompressed:
		return b
	case Snappy:
		return snappy.Encode(nil, b)
	case Gzip:
		return gzipOf(t, b)
	case Brotli:
		var out bytes.Buffer
		w := brotli.NewWriterLevel(&out, 2)
		w.Write(b)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	case Zstd:
		w, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return w.EncodeAll(b, nil)
	case LZ4Raw:
		return lz4Block(t, b)
	case LZ4:
		return hadoop(t, [][]byte{b})
	}
	t.Fatal(c)
	return nil
}

// hadoop frames blocks, each of one or more chunks.
func hadoop(t testing.TB, blocks ...[][]byte) (out []byte) {
	for _, chunks := range blocks {
		out = binary.BigEndian.AppendUint32(out, uint32(len(bytes.Join(chunks, nil))))
		for _, c := range chunks {
			z := lz4Block(t, c)
			out = append(binary.BigEndian.AppendUint32(out, uint32(len(z))), z...)
		}
	}
	return out
}

var compressing = []Codec{Snappy, Gzip, Brotli, Zstd, LZ4Raw, LZ4}

func TestCodecs(t *testing.T) {
	little := make([]byte, 80000) // LZ4 makes two thirds of it
	for i := range 10000 {
		binary.LittleEndian.PutUint64(little[8*i:], uint64(i)*2654435761%(1<<41))
	}
	texts := map[string][]byte{
		"little":    little,
		"one byte":  []byte("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
		"zeros":     make([]byte, 3<<20),
		"large":     bytes.Repeat([]byte("0123456789abcdef"), 17<<16), // above what is allocated at once
		"repeating": bytes.Repeat([]byte("abc, "), 1000),
	}
	p := &Pools{}
	for name, text := range texts {
		for _, codec := range append(compressing, Uncompressed) {
			z := compress(t, codec, text)
			for _, buf := range [][]byte{nil, make([]byte, 100), make([]byte, 4<<20)} {
				got, err := p.uncompress(codec, buf, z, len(text))
				if err != nil || !bytes.Equal(got, text) {
					t.Fatalf("%s, codec %d: %d bytes of %d, %v", name, codec, len(got), len(text), err)
				}
				if len(text) > streamedSize {
					break
				}
			}
			if len(text) > streamedSize {
				continue
			}
			for _, wrong := range []int{len(text) - 1, len(text) + 1, 1, math.MaxInt32} {
				if _, err := p.uncompress(codec, nil, z, wrong); !errors.Is(err, ErrCorrupt) {
					t.Errorf("%s, codec %d: %d bytes for %d: %v", name, codec, len(text), wrong, err)
				}
			}
			if _, err := p.uncompress(codec, nil, z[:len(z)-1], len(text)); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, codec %d: cut: %v", name, codec, err)
			}
		}
	}
}

// LZ4_RAW pages that shrink to more than a third: a decoder that starts with
// too small a buffer returns an older page's bytes.
func TestLZ4RawLittleCompression(t *testing.T) {
	f := open(t, load(t, fixtures+"lz4-little.parquet"))
	c := firstChunk(t, f)
	if c.Meta.Codec != LZ4Raw || 3*c.Meta.TotalCompressedSize < c.Meta.TotalUncompressedSize {
		t.Fatalf("the fixture should be LZ4_RAW and compress little: %+v", c.Meta)
	}
	data, err := readLeaf(t, f, f.Schema.Leaves[0])
	if err != nil || len(data.values) != 3000 {
		t.Fatal(len(data.values), err)
	}
	for i := 0; i < 3000; i += 2 {
		if want := fmt.Sprintf("%x", binary.LittleEndian.AppendUint64(nil, uint64(i))); data.values[i] != want {
			t.Fatalf("value %d is %s", i, data.values[i])
		}
	}
}

func TestHadoopLZ4(t *testing.T) {
	a, b, c := bytes.Repeat([]byte("a1"), 300), bytes.Repeat([]byte("b22"), 300), bytes.Repeat([]byte("c"), 300)
	text := bytes.Join([][]byte{a, b, c}, nil)
	p := &Pools{}
	for name, z := range map[string][]byte{
		"one block":              hadoop(t, [][]byte{text}),
		"blocks":                 hadoop(t, [][]byte{a}, [][]byte{b}, [][]byte{c}),
		"one block of chunks":    hadoop(t, [][]byte{a, b, c}),
		"blocks of chunks":       hadoop(t, [][]byte{a, b}, [][]byte{c}),
		"no framing (as LZ4RAW)": lz4Block(t, text),
	} {
		got, err := p.uncompress(LZ4, nil, z, len(text))
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %v", name, err)
		}
		for i := range z {
			if got, err := p.uncompress(LZ4, nil, z[:i], len(text)); err == nil {
				t.Errorf("%s cut at %d: %d bytes", name, i, len(got))
			}
		}
	}
	for _, name := range []string{"hadoop-lz4-1.parquet", "hadoop-lz4-2.parquet"} {
		f := open(t, load(t, fixtures+name))
		if codec := f.Metadata.RowGroups[0].Columns[0].MetaData.Codec; codec != LZ4 {
			t.Fatal(codec)
		}
		ids, err := readLeaf(t, f, f.Schema.Leaves[0])
		if err != nil || len(ids.values) != 1000 {
			t.Fatal(len(ids.values), err)
		}
		texts, err := readLeaf(t, f, f.Schema.Leaves[7])
		if err != nil || len(texts.values) != 1000 {
			t.Fatal(len(texts.values), err)
		}
		for i, id := range ids.values {
			n := binary.LittleEndian.Uint64(unhex(t, id))
			if want := strings.Repeat(fmt.Sprintf("long-%d", n%20), 5); string(unhex(t, texts.values[i])) != want {
				t.Fatalf("%s: row %d: %q, not %q", name, i, unhex(t, texts.values[i]), want)
			}
		}
	}
}

func TestGzipMembers(t *testing.T) {
	p := &Pools{}
	z := gzipOf(t, []byte("one "), []byte("two "), []byte("three"))
	got, err := p.uncompress(Gzip, nil, z, 13)
	if err != nil || string(got) != "one two three" {
		t.Errorf("%q, %v", got, err)
	}
}

// Sizes that lie do not allocate what they claim.
func TestCodecBombs(t *testing.T) {
	p := &Pools{}
	for _, codec := range compressing {
		z := compress(t, codec, bytes.Repeat([]byte("0123456789abcdef"), 64))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := p.uncompress(codec, nil, z, math.MaxInt32); !errors.Is(err, ErrCorrupt) {
			t.Error(codec, err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 3*streamedSize {
			t.Errorf("codec %d: %d bytes allocated for a page of %d", codec, n, len(z))
		}
	}
}

func TestCodecGarbage(t *testing.T) {
	p := &Pools{}
	for _, codec := range compressing {
		for _, z := range [][]byte{{}, {0}, []byte("garbage, not compressed at all"), make([]byte, 64), bytes.Repeat([]byte{0xff}, 64)} {
			if got, err := p.uncompress(codec, nil, z, 1000); !errors.Is(err, ErrCorrupt) {
				t.Errorf("codec %d: %x: %d bytes, %v", codec, z, len(got), err)
			}
		}
	}
}
