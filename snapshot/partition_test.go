package snapshot

import (
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

func TestPartitionKey(t *testing.T) {
	nan := math.Float64frombits(0x7ff8000000000001)
	decimal := func(v int64, scale int) any {
		return iceberg.DecimalLiteral{Val: decimal128.FromI64(v), Scale: scale}
	}
	// Values of one row are one partition, those of different rows are not.
	classes := [][]any{
		{nil},
		{true},
		{false},
		{int32(5), int64(5), iceberg.Date(5), iceberg.Timestamp(5)},
		{int32(-5), int64(-5)},
		{float32(1.5), 1.5},
		{0.0, float32(0)},
		{math.Copysign(0, -1), float32(math.Copysign(0, -1))},
		{nan, math.NaN(), float32(math.NaN()), -math.NaN()},
		{math.Inf(1)},
		{""},
		{"5"},
		{"a"},
		{"a\x00"},
		{[]byte("a")},
		{[]byte{}},
		{uuid.UUID{1}},
		{decimal(150, 2), decimal(150, 2)},
		{decimal(15, 2)},
		{decimal(150, 3)},
	}
	for i, class := range classes {
		for j, other := range classes {
			for _, a := range class {
				for _, b := range other {
					ka := PartitionKey(1, []int{1000}, map[int]any{1000: a})
					kb := PartitionKey(1, []int{1000}, map[int]any{1000: b})
					if (ka == kb) != (i == j) {
						t.Errorf("%T %v and %T %v: one partition is %v", a, a, b, b, ka == kb)
					}
				}
			}
		}
	}
	two := func(a, b any) string {
		return PartitionKey(1, []int{1000, 1001}, map[int]any{1000: a, 1001: b})
	}
	if two("ab", "c") == two("a", "bc") || two(nil, "x") == two("x", nil) {
		t.Error("values run into each other")
	}
	if PartitionKey(1, []int{1000}, nil) == PartitionKey(2, []int{1000}, nil) {
		t.Error("specs are not told apart")
	}
	if PartitionKey(1, nil, map[int]any{2: 1, 1: 2}) != PartitionKey(1, []int{1, 2}, map[int]any{1: 2, 2: 1}) {
		t.Error("without field ids the partition's own are not used in order")
	}
}

func TestComparablePath(t *testing.T) {
	for path, want := range map[string]string{
		"/x/y":           "/x/y",
		"file:/x/y":      "/x/y",
		"file:///x/y":    "/x/y",
		"file:///x%20/y": "/x%20/y",
		"file://host/x":  "//host/x",
		"file:x":         "file:x",
		"s3://x/y":       "s3://x/y",
		"S3://x/file:/y": "S3://x/file:/y",
		"":               "",
		"FILE:/x":        "FILE:/x",
		"hdfs:///x":      "hdfs:///x",
	} {
		if got := comparablePath(path); got != want {
			t.Errorf("comparablePath(%q) = %q, want %q", path, got, want)
		}
	}
}
