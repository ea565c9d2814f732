package reference

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGoldenVectors decodes Iceberg's own vectors; CRoaring told what is in them.
func TestGoldenVectors(t *testing.T) {
	const dir = "../../testdata/golden-dv"
	raw, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index map[string]struct {
		Kind        string
		Cardinality int
		First, Last []int64
		Sum         int64
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		t.Fatal(err)
	}
	for name, want := range index {
		blob, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if want.Kind != "deletion-vector-v1 blob" {
			blob = envelope(blob)
		}
		got, err := vectorPositions(blob, math.MaxInt64)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		all := slices.Sorted(maps.Keys(got))
		sum := int64(0)
		for _, p := range all {
			sum += p
		}
		first, last := all[:min(len(all), len(want.First))], all[max(0, len(all)-len(want.Last)):]
		if len(all) != want.Cardinality || sum != want.Sum || !slices.Equal(first, want.First) || !slices.Equal(last, want.Last) {
			t.Errorf("%s: %d positions, sum %d, %v to %v", name, len(all), sum, first, last)
		}
	}
	if len(index) < 7 {
		t.Errorf("only %d vectors", len(index))
	}
}

// envelope wraps a bitmap as a deletion vector.
func envelope(bitmap []byte) []byte {
	body := append([]byte{0xD1, 0xD3, 0x39, 0x64}, bitmap...)
	blob := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	blob = append(blob, body...)
	return binary.BigEndian.AppendUint32(blob, crc32.ChecksumIEEE(body))
}

func TestDamagedVectors(t *testing.T) {
	le := binary.LittleEndian
	one := func(bitmap ...byte) []byte { // one 32-bit bitmap under key 0
		return envelope(append(append(le.AppendUint64(nil, 1), 0, 0, 0, 0), bitmap...))
	}
	array := le.AppendUint32(le.AppendUint32(nil, 12346), 1) // one container
	whole := one(append(slices.Clone(array), 0, 0, 0, 0, 16, 0, 0, 0, 7, 0)...)
	if got, err := vectorPositions(whole, 1); err != nil || len(got) != 1 || !got[7] {
		t.Fatalf("the sound one: %v, %v", got, err)
	}
	run := le.AppendUint32(nil, 12347)
	for name, c := range map[string]struct {
		blob []byte
		want string
	}{
		"empty":         {nil, "length"},
		"length":        {append(slices.Clone(whole), 0), "length"},
		"magic":         {append(append(slices.Clone(whole[:4]), 0), whole[5:]...), "magic"},
		"checksum":      {append(slices.Clone(whole[:len(whole)-1]), whole[len(whole)-1]^1), "checksum"},
		"key":           {envelope(append(le.AppendUint64(nil, 1), 0xFF, 0xFF, 0xFF, 0xFF)), "too large"},
		"cookie":        {one(1, 2, 3, 4), "cookie"},
		"cut":           {one(array...), "cut short"},
		"count":         {envelope(le.AppendUint64(nil, 1<<60)), "cut short"},
		"containers":    {one(le.AppendUint32(le.AppendUint32(nil, 12346), 1<<31)...), "too many"},
		"left over":     {one(append(slices.Clone(array), 0, 0, 0, 0, 16, 0, 0, 0, 7, 0, 9)...), "left over"},
		"run too long":  {one(append(slices.Clone(run), 1, 0, 0, 9, 0, 1, 0, 0xFF, 0xFF, 9, 0)...), "past its container"},
		"too many":      {one(append(slices.Clone(run), 1, 0, 0, 9, 0, 1, 0, 0, 0, 0xFF, 0xFF)...), "more positions"},
		"no bitmap end": {one(append(slices.Clone(array), 0, 0, 0xFF, 0xFF, 16, 0, 0, 0)...), "cut short"},
	} {
		if _, err := vectorPositions(c.blob, 100); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
