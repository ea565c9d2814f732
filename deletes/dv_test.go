package deletes

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

const goldenDir = "../testdata/golden-dv"

// golden is an entry of the golden files' index: what CRoaring decoded.
type golden struct {
	Kind        string
	Cardinality int64
	Ranges      [][2]int64
	Sum         int64
}

func readGolden(t testing.TB) map[string]golden {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(goldenDir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index map[string]golden
	if err := json.Unmarshal(b, &index); err != nil {
		t.Fatal(err)
	}
	return index
}

func TestGolden(t *testing.T) {
	index := readGolden(t)
	files, err := filepath.Glob(filepath.Join(goldenDir, "*.bin"))
	if err != nil || len(files) != 8 {
		t.Fatalf("golden files: %v, %v", files, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(name) == "64maphighvals.bin" {
				// Its keys have bit 31 set: no file position.
				if _, err := decodePortable(b); err == nil || !strings.Contains(err.Error(), "2^31") {
					t.Errorf("error = %v", err)
				}
				return
			}
			want, ok := index[filepath.Base(name)]
			if !ok {
				t.Fatal("not in the index")
			}
			var p *Positions
			if want.Kind == "deletion-vector-v1 blob" {
				p, err = decodeDV(b, want.Cardinality)
			} else {
				p, err = decodePortable(b)
			}
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, p, want)
		})
	}
}

func checkGolden(t *testing.T, p *Positions, want golden) {
	t.Helper()
	if p.Count() != want.Cardinality {
		t.Errorf("cardinality %d, want %d", p.Count(), want.Cardinality)
	}
	ranges := [][2]int64{}
	sum := int64(0)
	for _, r := range p.DeletedRanges(nil, 0, 1<<62) {
		ranges = append(ranges, [2]int64{r.Start, r.End})
		sum += (r.End - r.Start) * (r.Start + r.End - 1) / 2
	}
	if !slices.Equal(ranges, want.Ranges) || sum != want.Sum {
		t.Errorf("ranges %v, want %v; sum %d, want %d", ranges, want.Ranges, sum, want.Sum)
	}
}

// blobOf frames a 64-bit portable bitmap as a deletion vector.
func blobOf(vector []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(vector)))
	b = append(b, dvMagic...)
	b = append(b, vector...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// encode writes positions with the roaring library's own 64-bit bitmaps.
func encode(t testing.TB, pos []int64, runs bool) []byte {
	t.Helper()
	m := roaring64.New()
	for _, p := range pos {
		m.Add(uint64(p))
	}
	if runs {
		m.RunOptimize()
	}
	b, err := m.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecodeDV(t *testing.T) {
	for name, pos := range shapes(rand.New(rand.NewPCG(7, 8))) {
		for _, runs := range []bool{false, true} {
			p, err := decodeDV(blobOf(encode(t, pos, runs)), int64(len(pos)))
			if err != nil {
				t.Fatalf("%s, runs %v: %v", name, runs, err)
			}
			checkWindow(t, p, setOf(pos), 0, 300_000)
			checkWindow(t, p, setOf(pos), 1<<32-10, 1<<32+10)
		}
	}
	if p, err := decodeDV(blobOf(encode(t, nil, false)), 0); p != nil || err != nil {
		t.Errorf("empty vector = %v, %v", p, err)
	}
	// Memory follows the containers, not the range of keys.
	p, err := decodeDV(blobOf(encode(t, []int64{0, 2147483647<<32 | 5}, false)), 2)
	if err != nil || p.Bytes() > 1000 || p.CountRange(1<<62, 1<<63-1) != 1 {
		t.Errorf("far keys: %v, %d bytes", err, p.Bytes())
	}
}

func TestDecodeDVRefuses(t *testing.T) {
	good := blobOf(encode(t, []int64{1, 3, 70_000}, false))
	change := func(f func(b []byte) []byte) []byte { return f(slices.Clone(good)) }
	le := binary.LittleEndian
	vector := func(parts ...[]byte) []byte { return blobOf(slices.Concat(parts...)) }
	u64 := func(n uint64) []byte { return le.AppendUint64(nil, n) }
	u32 := func(n ...uint32) (b []byte) {
		for _, v := range n {
			b = le.AppendUint32(b, v)
		}
		return b
	}
	u16 := func(n ...uint16) (b []byte) {
		for _, v := range n {
			b = le.AppendUint16(b, v)
		}
		return b
	}
	words := make([]byte, denseBytes)
	words[0] = 1
	// One container of key 0: cookie, count, (key, card-1), offset, payload.
	noRuns := func(card uint16, payload []byte) []byte {
		return vector(u64(1), u32(0, cookieNoRuns, 1), u16(0, card-1), u32(16), payload)
	}
	withRuns := func(card uint16, payload []byte) []byte {
		return vector(u64(1), u32(0, cookieRuns), []byte{1}, u16(0, card-1), payload)
	}
	for _, c := range []struct {
		name  string
		blob  []byte
		cards int64
		say   string
	}{
		{"cardinality differs", good, 4, "3 positions, the manifest says 4"},
		{"cardinality unknown", good, -1, "manifest says -1"},
		{"flipped CRC", change(func(b []byte) []byte { b[len(b)-1] ^= 1; return b }), 3, "CRC"},
		{"flipped value", change(func(b []byte) []byte { b[len(b)-5] ^= 1; return b }), 3, "CRC"},
		{"magic", change(func(b []byte) []byte { b[4] = 0; return b }), 3, "magic"},
		{"length", change(func(b []byte) []byte { b[3]++; return b }), 3, "length"},
		{"truncated", good[:len(good)-1], 3, "length"},
		{"frame only", good[:dvFrame-1], 3, "ends early"},
		{"no count", blobOf(u32(1)), 0, "ends early"},
		{"33 million bitmaps in 20 bytes", vector(u64(33_554_432))[:20:20], 0, "bitmaps claimed"},
		{"2^63 bitmaps", vector(u64(1 << 63)), 0, "bitmaps claimed"},
		{"key 2^31", vector(u64(1), u32(1<<31, cookieNoRuns, 0)), 0, "2^31"},
		{"keys repeated", vector(u64(2), u32(0, cookieNoRuns, 0), u32(0, cookieNoRuns, 0)), 0, "follows"},
		{"bytes left", vector(u64(0), []byte{0}), 0, "after the last"},
		{"cookie", vector(u64(1), u32(0, 99, 0)), 0, "cookie"},
		{"70,000 containers", vector(u64(1), u32(0, cookieNoRuns, 70_000)), 0, "containers"},
		{"no descriptors", vector(u64(1), u32(0, cookieNoRuns, 65_536)), 0, "ends early"},
		{"no payload", noRuns(3, u16(1, 2)), 3, "ends early"},
		{"array order", noRuns(2, u16(2, 1)), 2, "ascending"},
		{"array duplicate", noRuns(2, u16(2, 2)), 2, "ascending"},
		{"popcount", noRuns(5000, words), 5000, "1 bits set"},
		{"container order", vector(u64(1), u32(0, cookieNoRuns, 2), u16(1, 0, 1, 0), u32(24, 26), u16(7, 7)), 2, "follows"},
		{"runs overlap", withRuns(6, u16(2, 5, 2, 6, 2)), 6, "overlap"},
		{"runs touch", withRuns(6, u16(2, 5, 2, 8, 2)), 6, "touch"},
		{"run leaves", withRuns(6, u16(1, 65533, 5)), 6, "leave"},
		{"run cardinality", withRuns(7, u16(1, 0, 5)), 7, "runs of 6"},
		{"no runs", withRuns(1, u16(0)), 1, "runs of 0"},
		{"run count", withRuns(1, u16(9, 0, 0)), 1, "ends early"},
	} {
		p, err := decodeDV(c.blob, c.cards)
		if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, error %v, want %q", c.name, p, err, c.say)
		}
	}
}

// TestDecodeDVAllocation holds a hostile count to the blob's own size.
func TestDecodeDVAllocation(t *testing.T) {
	hostile := blobOf(binary.LittleEndian.AppendUint64(nil, 33_554_432))
	per := testing.AllocsPerRun(10, func() { _, _ = decodeDV(hostile, 0) })
	res := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_, _ = decodeDV(hostile, 0)
		}
	})
	if per > 20 || res.AllocedBytesPerOp() > 4096 {
		t.Errorf("%v allocations, %d bytes", per, res.AllocedBytesPerOp())
	}
}

// FuzzDV: whatever decodeDV takes, the roaring library takes too, with the same
// positions, and nothing panics.
func FuzzDV(f *testing.F) {
	for _, pos := range [][]int64{nil, {0}, {1, 3, 5}, {1, 1 << 32, 1 << 40}, span(0, 70_000)} {
		f.Add(encode(f, pos, false))
		f.Add(encode(f, pos, true))
	}
	for name := range readGolden(f) {
		b, err := os.ReadFile(filepath.Join(goldenDir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, vector []byte) {
		_, _ = decodeDV(vector, 0) // as a whole blob: seldom valid
		plain, err := decodePortable(vector)
		if err != nil {
			return
		}
		p, err := decodeDV(blobOf(vector), plain.Count())
		if err != nil {
			t.Fatalf("the frame made a difference: %v", err)
		}
		m := roaring64.New()
		if err := m.UnmarshalBinary(vector); err != nil {
			t.Fatalf("roaring refuses what was accepted: %v", err)
		}
		if err := m.Validate(); err != nil {
			t.Fatalf("roaring finds it invalid: %v", err)
		}
		if m.GetCardinality() != uint64(p.Count()) {
			t.Fatalf("%d positions, roaring has %d", p.Count(), m.GetCardinality())
		}
		n := 0
		for it := m.Iterator(); it.HasNext() && n < 5000; n++ {
			pos := int64(it.Next())
			if p.CountRange(pos, pos+1) != 1 {
				t.Fatalf("position %d is missing", pos)
			}
		}
	})
}
