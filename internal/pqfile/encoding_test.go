package pqfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/delta"
)

// pack is the slow and obvious bit packing.
func pack(list []uint64, width uint) []byte {
	out := make([]byte, (uint(len(list))*width+7)/8)
	for i, v := range list {
		for b := range width {
			bit := uint(i)*width + b
			out[bit/8] |= byte(v>>b&1) << (bit % 8)
		}
	}
	return out
}

func random(r *rand.Rand, n int, width uint) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = r.Uint64() & (1<<width - 1)
	}
	return list
}

func TestUnpack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for width := uint(1); width <= 64; width++ {
		for _, n := range []int{0, 1, 7, 8, 9, 16, 31, 64, 100, 1000} {
			want := random(r, n, width)
			src := pack(want, width) // no byte to spare behind
			src = src[:len(src):len(src)]
			wide := make([]int64, n)
			unpack64(wide, src, width)
			for i, v := range wide {
				if uint64(v) != want[i] {
					t.Fatalf("unpack64, width %d: value %d of %d is %x, not %x", width, i, n, v, want[i])
				}
			}
			if width <= 32 {
				got := make([]uint32, n)
				unpack32(got, src, width)
				for i, v := range got {
					if uint64(v) != want[i] {
						t.Fatalf("unpack32, width %d: value %d of %d is %x, not %x", width, i, n, v, want[i])
					}
				}
			}
			if width <= 8 {
				got := make([]uint8, n)
				unpack8(got, src, width)
				for i, v := range got {
					if uint64(v) != want[i] {
						t.Fatalf("unpack8, width %d: value %d of %d is %x, not %x", width, i, n, v, want[i])
					}
				}
			}
		}
	}
}

// hybrid encodes values as random runs.
func hybrid(r *rand.Rand, list []uint64, width uint) (out []byte) {
	for len(list) > 0 {
		if r.IntN(2) == 0 {
			n := 1
			for n < len(list) && list[n] == list[0] {
				n++
			}
			out = binary.AppendUvarint(out, uint64(n)<<1)
			out = append(out, binary.LittleEndian.AppendUint64(nil, list[0])[:(width+7)/8]...)
			list = list[n:]
			continue
		}
		groups := 1 + r.IntN(5)
		n := min(8*groups, len(list))
		out = binary.AppendUvarint(out, uint64(groups)<<1|1)
		packed := pack(list[:n], width)
		if n == len(list) && r.IntN(2) == 0 {
			return append(out, packed...) // the last group may be cut
		}
		out = append(append(out, packed...), make([]byte, groups*int(width)-len(packed))...)
		list = list[n:]
	}
	return out
}

func TestHybrid(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for width := uint(1); width <= 32; width++ {
		for range 50 {
			want := random(r, r.IntN(200), width)
			for i := range want {
				if i > 0 && r.IntN(3) > 0 {
					want[i] = want[i-1]
				}
			}
			src := hybrid(r, want, width)
			got := make([]uint32, len(want))
			top := uint64(0)
			for _, v := range want {
				top = max(top, v)
			}
			if top == math.MaxUint32 {
				continue
			}
			if err := decodeHybrid32(got, src, width, uint32(top+1)); err != nil {
				t.Fatal(width, err)
			}
			for i, v := range got {
				if uint64(v) != want[i] {
					t.Fatalf("width %d: value %d is %d, not %d", width, i, v, want[i])
				}
			}
			if len(want) > 0 {
				if err := decodeHybrid32(got, src, width, uint32(top)); !errors.Is(err, ErrCorrupt) {
					t.Fatalf("width %d: limit %d: %v", width, top, err)
				}
			}
			if width <= 8 {
				small := make([]uint8, len(want))
				if err := decodeHybrid8(small, src, width); err != nil {
					t.Fatal(width, err)
				}
				for i, v := range small {
					if uint64(v) != want[i] {
						t.Fatalf("width %d: value %d is %d, not %d", width, i, v, want[i])
					}
				}
			}
			for i := range src {
				decodeHybrid32(got, src[:i], width, math.MaxUint32) // does not panic
			}
		}
	}
}

func TestHybridHugeRuns(t *testing.T) {
	for _, src := range [][]byte{
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},    // packed groups of 2^63
		{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},    // repeated, cut
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, // no varint
		{0, 1, 0, 1, 1}, // empty runs
		{},
	} {
		if err := decodeHybrid32(make([]uint32, 10), src, 8, 255); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%x: %v", src, err)
		}
	}
}

func TestDelta(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	lists := map[string]func(i int) int64{
		"equal":    func(i int) int64 { return 7 },
		"ascend":   func(i int) int64 { return int64(i) * 1000 },
		"descend":  func(i int) int64 { return -int64(i) },
		"extremes": func(i int) int64 { return []int64{math.MinInt64, math.MaxInt64, 0}[i%3] },
		"random":   func(i int) int64 { return int64(r.Uint64()) >> (r.Uint64() % 64) },
	}
	for name, value := range lists {
		for _, n := range []int{1, 2, 32, 33, 128, 129, 130, 1000} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				wide, narrow := make([]int64, n), make([]int32, n)
				var want64, want32 []string
				for i := range n {
					wide[i] = value(i)
					narrow[i] = int32(wide[i])
					want64 = append(want64, fmt.Sprintf("%x", binary.LittleEndian.AppendUint64(nil, uint64(wide[i]))))
					want32 = append(want32, fmt.Sprintf("%x", binary.LittleEndian.AppendUint32(nil, uint32(narrow[i]))))
				}
				var enc delta.BinaryPackedEncoding
				b, err := enc.EncodeInt64(nil, wide)
				if err != nil {
					t.Fatal(err)
				}
				m := required(Int64)
				m.page(v1(int32(n), DeltaBinaryPacked), b...)
				m.want(t, nil, want64...)
				if b, err = enc.EncodeInt32(nil, narrow); err != nil {
					t.Fatal(err)
				}
				m = required(Int32)
				m.page(v1(int32(n), DeltaBinaryPacked), b...)
				m.want(t, nil, want32...)
			})
		}
	}
}

func deltas(t testing.TB, list ...int32) []byte {
	t.Helper()
	b, err := new(delta.BinaryPackedEncoding).EncodeInt32(nil, list)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDeltaErrors(t *testing.T) {
	join := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	ints := []struct {
		name string
		body []byte
	}{
		{"empty", nil},
		{"no blocks", []byte{128, 1, 4, 2, 0}},
		{"block size 0", []byte{0, 4, 2, 0}},
		{"no miniblocks", []byte{128, 1, 0, 2, 0}},
		{"miniblocks do not divide", []byte{128, 1, 3, 2, 0}},
		{"miniblock of 4", []byte{128, 1, 32, 2, 0}},
		{"block of 2^40", []byte{128, 128, 128, 128, 128, 32, 4, 2, 0}},
		{"width 65", append([]byte{128, 1, 4, 2, 0, 0, 65, 0, 0, 0}, make([]byte, 300)...)},
		{"miniblock cut", []byte{128, 1, 4, 2, 0, 0, 32, 0, 0, 0, 1, 2, 3}},
		{"too few values", deltas(t, 1)},
		{"too many values", deltas(t, 1, 2, 3)},
	}
	for _, tt := range ints {
		t.Run(tt.name, func(t *testing.T) {
			m := required(Int32)
			m.page(v1(2, DeltaBinaryPacked), tt.body...)
			m.wantError(t, ErrCorrupt)
		})
	}
	strs := []struct {
		name string
		e    Encoding
		body []byte
	}{
		{"lengths past the end", DeltaLengthByteArray, join(deltas(t, 1, 5), []byte("abc"))},
		{"negative length", DeltaLengthByteArray, join(deltas(t, 3, -1), []byte("abc"))},
		{"lengths cut", DeltaLengthByteArray, deltas(t, 1, 5)[:3]},
		{"first value has a prefix", DeltaByteArray, join(deltas(t, 1, 0), deltas(t, 1, 1), []byte("ab"))},
		{"prefix longer than the value before", DeltaByteArray, join(deltas(t, 0, 3), deltas(t, 2, 1), []byte("abc"))},
		{"negative prefix", DeltaByteArray, join(deltas(t, 0, -1), deltas(t, 2, 1), []byte("abc"))},
		{"no suffixes", DeltaByteArray, deltas(t, 0, 0)},
		{"prefixes of 4 GiB", DeltaByteArray, join(deltas(t, math.MaxInt32, math.MaxInt32), deltas(t, 1, 1), []byte("ab"))},
	}
	for _, tt := range strs {
		t.Run(tt.name, func(t *testing.T) {
			m := required(ByteArray)
			m.page(v1(2, tt.e), tt.body...)
			want := ErrCorrupt
			if tt.name == "prefixes of 4 GiB" {
				want = ErrUnsupported
			}
			m.wantError(t, want)
		})
	}
	m := required(FixedLenByteArray)
	m.elem.TypeLength = ptr(int32(2))
	m.page(v1(2, DeltaByteArray), join(deltas(t, 0, 1), deltas(t, 2, 2), []byte("abcd"))...)
	m.wantError(t, ErrCorrupt) // the second value has 3 bytes
}

func TestStreamSplit(t *testing.T) {
	m := required(FixedLenByteArray)
	m.elem.TypeLength = ptr(int32(3))
	m.page(v1(2, ByteStreamSplit), []byte("adbecf")...)
	m.want(t, nil, "616263", "646566")
	for _, body := range []string{"", "adbec", "abc"} {
		m := required(FixedLenByteArray)
		m.elem.TypeLength = ptr(int32(3))
		m.page(v1(2, ByteStreamSplit), []byte(body)...)
		m.wantError(t, ErrCorrupt)
	}
}

func TestValuesOfMoreThanThePage(t *testing.T) {
	m := required(Int32)
	m.page(v1(1, Plain), 1, 2, 3, 4)
	c := firstChunk(t, open(t, &memory{data: m.bytes()}))
	s := c.Scan(c.Start, c.Start+c.Length)
	p, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := c.NewDecoder()
	defer d.Release()
	pd, err := d.Uncompress(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{-1, 2, math.MaxInt} {
		if _, err := d.Values(&pd, n); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d values: %v", n, err)
		}
	}
}

func BenchmarkUnpack(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, width := range []uint{1, 4, 7, 12, 16, 20, 32} {
		src := append(pack(random(r, 8192, width), width), make([]byte, 16)...)
		dst := make([]uint32, 8192)
		b.Run(fmt.Sprint("uint32/", width), func(b *testing.B) {
			b.SetBytes(8192)
			for b.Loop() {
				unpack32(dst, src, width)
			}
		})
	}
	src := pack(random(r, 8192, 1), 1)
	dst := make([]uint8, 8192)
	b.Run("bits", func(b *testing.B) {
		b.SetBytes(8192)
		for b.Loop() {
			unpack8(dst, src, 1)
		}
	})
	b.Run("reaches", func(b *testing.B) {
		list := make([]uint32, 8192)
		b.SetBytes(8192)
		for b.Loop() {
			reaches(list, 1)
		}
	})
}

// BenchmarkPages decodes pages that are in memory; bytes are values.
func BenchmarkPages(b *testing.B) {
	const n = 20000
	r := rand.New(rand.NewPCG(1, 2))
	ints := make([]int64, n)
	var plain, strs []byte
	for i := range ints {
		ints[i] = int64(i)*17 + r.Int64N(100)
		plain = binary.LittleEndian.AppendUint64(plain, uint64(ints[i]))
		s := fmt.Appendf(nil, "value %d", r.IntN(100000))
		strs = append(binary.LittleEndian.AppendUint32(strs, uint32(len(s))), s...)
	}
	packed, err := new(delta.BinaryPackedEncoding).EncodeInt64(nil, ints)
	if err != nil {
		b.Fatal(err)
	}
	tests := []struct {
		name string
		t    Type
		e    Encoding
		body []byte
	}{
		{"int64 PLAIN", Int64, Plain, plain},
		{"int64 DELTA_BINARY_PACKED", Int64, DeltaBinaryPacked, packed},
		{"int64 BYTE_STREAM_SPLIT", Int64, ByteStreamSplit, plain},
		{"strings PLAIN", ByteArray, Plain, strs},
	}
	for _, tt := range tests {
		m := required(tt.t)
		m.page(v1(n, tt.e), tt.body...)
		c := firstChunk(b, open(b, &memory{data: m.bytes()}))
		s := c.Scan(c.Start, c.Start+c.Length)
		p, err := s.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.Run(tt.name, func(b *testing.B) {
			d := c.NewDecoder()
			defer d.Release()
			b.SetBytes(n)
			b.ReportAllocs()
			for b.Loop() {
				pd, err := d.Uncompress(p)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := d.Values(&pd, n); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
