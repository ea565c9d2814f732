package merge

import (
	"testing"

	"github.com/icefs/icefs/internal/pqfile"
)

// Any number of bytes can be filled but one that no reserve leaves open.
func TestPaddingFillsAnyLength(t *testing.T) {
	for fill := 0; fill < 20_000; fill++ {
		if fill > 600 && fill < 16_000 && fill%97 != 0 {
			continue
		}
		m := &pqfile.FileMetaData{Version: 2, Schema: []pqfile.SchemaElement{{Name: "t"}}, KeyValue: padding(0)}
		length := len(m.Marshal()) + fill
		b, err := padded(m, 0, length)
		if err != nil || len(b) != length {
			t.Fatalf("fill %d: %d bytes for %d, err %v", fill, len(b), length, err)
		}
	}
}

func TestServedEncodings(t *testing.T) {
	got := servedEncodings([]pqfile.Encoding{pqfile.PlainDictionary, pqfile.RLE, pqfile.BitPacked, pqfile.PlainDictionary})
	want := []pqfile.Encoding{pqfile.Plain, pqfile.RLEDictionary, pqfile.RLE, pqfile.BitPacked}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestAdoptDecimal(t *testing.T) {
	decimal := func(typ pqfile.Type, length, precision, scale int) *pqfile.Node {
		return &pqfile.Node{Type: typ, TypeLength: length, Logical: pqfile.LogicalType{Kind: pqfile.LogicalDecimal, Precision: int32(precision), Scale: int32(scale)}}
	}
	for _, c := range []struct {
		name   string
		leaf   *pqfile.Node
		stored *pqfile.Node
		want   pqfile.Type
		length int
	}{
		{"bytes for int32", decimal(pqfile.Int32, 0, 9, 2), decimal(pqfile.FixedLenByteArray, 4, 9, 2), pqfile.FixedLenByteArray, 4},
		{"too few bytes", decimal(pqfile.Int64, 0, 10, 2), decimal(pqfile.FixedLenByteArray, 4, 9, 2), pqfile.Int64, 0},
		{"int32 promoted", decimal(pqfile.Int64, 0, 12, 2), decimal(pqfile.Int32, 0, 6, 2), pqfile.Int64, 0},
		{"int32 within its digits", decimal(pqfile.Int32, 0, 9, 2), decimal(pqfile.Int32, 0, 6, 2), pqfile.Int32, 0},
		{"other scale", decimal(pqfile.Int32, 0, 9, 2), decimal(pqfile.FixedLenByteArray, 4, 9, 3), pqfile.Int32, 0},
		{"byte array", decimal(pqfile.Int32, 0, 9, 2), decimal(pqfile.ByteArray, 0, 9, 2), pqfile.Int32, 0},
		{"16 bytes hold 38 digits", decimal(pqfile.FixedLenByteArray, 16, 38, 0), decimal(pqfile.FixedLenByteArray, 16, 38, 0), pqfile.FixedLenByteArray, 16},
	} {
		adoptDecimal(c.leaf, c.stored)
		if c.leaf.Type != c.want || c.leaf.TypeLength != c.length {
			t.Errorf("%s: got type %d length %d", c.name, c.leaf.Type, c.leaf.TypeLength)
		}
	}
	for n, want := range map[int]int{1: 2, 2: 4, 4: 9, 8: 18, 16: 38} {
		if got := digitsOf(n); got != want {
			t.Errorf("%d bytes hold %d digits, want %d", n, got, want)
		}
	}
}
