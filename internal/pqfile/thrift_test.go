package pqfile

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPageHeaderGolden(t *testing.T) {
	v1 := &DataPageHeader{NumValues: 300, Encoding: Plain, DefinitionEncoding: RLE, RepetitionEncoding: RLE}
	tests := []struct {
		name string
		h    PageHeader
		want string
	}{
		{"V1", PageHeader{Type: DataPage, UncompressedSize: 1200, CompressedSize: 1000, Data: v1},
			"15 00 15 e012 15 d00f 2c 15 d804 15 00 15 06 15 06 00 00"},
		{"V1 with CRC and the least slack", PageHeader{Type: DataPage, UncompressedSize: 1200, CompressedSize: 1000,
			CRC: ptr(int32(-1)), Data: v1, Slack: 6},
			"15 00 15 e012 15 d00f 15 01 1c 15 d804 15 00 15 06 15 06 00 b8 8080808000 00"},
		{"dictionary, slack 9", PageHeader{Type: DictionaryPage, UncompressedSize: 8, CompressedSize: 8,
			Dictionary: &DictionaryPageHeader{NumValues: 2, Encoding: Plain, Sorted: ptr(false)}, Slack: 9},
			"15 04 15 10 15 10 4c 15 04 15 00 12 00 98 8380808000 000000 00"},
		{"V2, slack 7", PageHeader{Type: DataPageV2, UncompressedSize: 10, CompressedSize: 10,
			DataV2: &DataPageHeaderV2{NumValues: 4, NumNulls: 1, NumRows: 4, Encoding: RLEDictionary,
				DefinitionLength: 2, IsCompressed: ptr(false)}, Slack: 7},
			"15 06 15 14 15 14 5c 15 08 15 02 15 08 15 10 15 04 15 00 12 00 88 8180808000 00 00"},
		{"statistics with an empty minimum", PageHeader{Type: DataPage, Data: &DataPageHeader{
			Encoding: Plain, DefinitionEncoding: RLE, RepetitionEncoding: RLE,
			Statistics: &Statistics{MaxValue: []byte("a"), MinValue: []byte{}, MaxExact: ptr(true)}}},
			"15 00 15 00 15 00 2c 15 00 15 00 15 06 15 06 1c 58 01 61 18 00 11 00 00 00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := unhex(t, tt.want)
			got := tt.h.Append([]byte("x"))[1:]
			if !bytes.Equal(got, want) {
				t.Fatalf("got  %x\nwant %x", got, want)
			}
			var back PageHeader
			n, err := UnmarshalPageHeader(append(got, "trailing"...), &back)
			if err != nil || n != len(want) {
				t.Fatalf("decoded %d of %d bytes: %v", n, len(want), err)
			}
			back.Slack = tt.h.Slack
			if !reflect.DeepEqual(back, tt.h) {
				t.Errorf("decoded %+v, want %+v", back, tt.h)
			}
			for i := range want {
				if _, err := UnmarshalPageHeader(want[:i], &back); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("cut at %d: %v", i, err)
				}
			}
		})
	}
}

func TestPageHeaderSlackLength(t *testing.T) {
	h := PageHeader{Type: DataPage, Data: &DataPageHeader{Encoding: Plain, DefinitionEncoding: RLE, RepetitionEncoding: RLE}}
	bare := len(h.Append(nil))
	for _, slack := range []int{6, 7, 133, 134, 16390, 2 << 20} {
		h.Slack = slack
		b := h.Append(nil)
		if len(b) != bare+slack {
			t.Errorf("slack %d adds %d bytes", slack, len(b)-bare)
		}
		if n, err := UnmarshalPageHeader(b, &PageHeader{}); n != len(b) || err != nil {
			t.Errorf("slack %d: %d of %d bytes, %v", slack, n, len(b), err)
		}
	}
}

func TestPageHeaderHostile(t *testing.T) {
	deep := append(unhex(t, "15 00 15 00 15 00 9c"), bytes.Repeat([]byte{0x1c}, 100)...)
	tests := []struct {
		name string
		b    []byte
		want error
	}{
		{"empty struct", unhex(t, "00"), ErrCorrupt},
		{"no size", unhex(t, "15 00 15 00 00"), ErrCorrupt},
		{"negative size", unhex(t, "15 02 15 00 15 01 00"), ErrCorrupt},
		{"type without its header", unhex(t, "15 00 15 00 15 00 00"), ErrCorrupt},
		{"unknown page type", unhex(t, "15 0e 15 00 15 00 00"), ErrUnsupported},
		{"size is a string", unhex(t, "15 02 18 00 15 00 00"), ErrCorrupt},
		{"size over 32 bits", unhex(t, "15 02 15 ffffffffff01 15 00 00"), ErrCorrupt},
		{"binary of 2^40 bytes", unhex(t, "15 02 15 00 15 00 d8 808080808020 00"), ErrCorrupt},
		{"type 14", unhex(t, "15 02 1e"), ErrCorrupt},
		{"nested too deep", deep, ErrCorrupt},
		{"list of 2^31 unknown structs", unhex(t, "15 02 15 00 15 00 d9 fc ffffffff07"), io.ErrUnexpectedEOF},
		{"list of stops", unhex(t, "15 02 15 00 15 00 d9 f0 ffffffff07"), ErrCorrupt},
		{"V2 levels longer than the page", unhex(t, "15 06 15 02 15 02 5c 15 02 15 00 15 02 15 00 15 04 15 00 00 00"), ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := UnmarshalPageHeader(tt.b, &PageHeader{}); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestPageHeaderSkipsUnknownFields(t *testing.T) {
	// Field 9 of every type, between known ones and last.
	index := "15 02 15 02 15 04 3c 00" // type, sizes, empty index page header (6)
	for _, unknown := range []string{
		"31", "32", "33 7f", "34 01", "35 80 01", "36 01", "37 0000000000000000", "38 02 6162",
		"39 25 02 04", "3a 21 01 02", "3b 00", "3b 01 88 01 61 00", "3c 1c 15 02 00 00", "39 f5 10 " + strings.Repeat("02", 16),
		"3d 00000000000000000000000000000000", "08 c801 00", // zigzag id 100
	} {
		b := unhex(t, index+unknown+"00")
		var h PageHeader
		n, err := UnmarshalPageHeader(b, &h)
		if err != nil || n != len(b) || h.UncompressedSize != 1 || h.CompressedSize != 2 {
			t.Errorf("%s: %d of %d bytes, %+v, %v", unknown, n, len(b), h, err)
		}
	}
}

// wholeFooter has every field of every struct.
func wholeFooter() *FileMetaData {
	chunk := ColumnChunk{FilePath: ptr(""), FileOffset: 4, OffsetIndexOffset: ptr(int64(900)), OffsetIndexLength: ptr(int32(11)),
		ColumnIndexOffset: ptr(int64(800)), ColumnIndexLength: ptr(int32(12)),
		MetaData: &ColumnMetaData{Type: ByteArray, Encodings: []Encoding{Plain, RLE}, Path: []string{"a", "b"}, Codec: Zstd,
			NumValues: 7, TotalUncompressedSize: 1 << 40, TotalCompressedSize: 300, KeyValue: []KeyValue{{Key: "k"}},
			DataPageOffset: 100, IndexPageOffset: ptr(int64(5)), DictionaryPageOffset: ptr(int64(4)),
			Statistics: &Statistics{Max: []byte("z"), Min: []byte{}, NullCount: ptr(int64(0)), DistinctCount: ptr(int64(3)),
				MaxValue: bytes.Repeat([]byte("y"), 3000), MinValue: []byte{0}, MaxExact: ptr(false), MinExact: ptr(true)},
			EncodingStats:     []PageEncodingStats{{DataPage, RLEDictionary, 3}},
			BloomFilterOffset: ptr(int64(70)), BloomFilterLength: ptr(int32(71)),
			SizeStatistics: &SizeStatistics{UnencodedByteArrayBytes: ptr(int64(9)), RepetitionHistogram: []int64{1, 2}, DefinitionHistogram: []int64{3}},
		}}
	bare := ColumnChunk{MetaData: &ColumnMetaData{Type: Int32, Encodings: []Encoding{}, Path: []string{"c"}}}
	leaf := func(name string, l *LogicalType) SchemaElement {
		return SchemaElement{Type: ptr(Int64), Repetition: ptr(Optional), Name: name, LogicalType: l}
	}
	return &FileMetaData{Version: 2, NumRows: 14, ColumnOrders: 2, CreatedBy: ptr("icefs version 1.0.0 (build icefs)"),
		Schema: []SchemaElement{
			{Name: "root", NumChildren: ptr(int32(10))},
			{Type: ptr(FixedLenByteArray), TypeLength: ptr(int32(9)), Repetition: ptr(Required), Name: "d", ConvertedType: ptr(ConvertedDecimal),
				Scale: ptr(int32(2)), Precision: ptr(int32(20)), FieldID: ptr(int32(-5)), LogicalType: &LogicalType{Kind: LogicalDecimal, Scale: 2, Precision: 20}},
			leaf("s", &LogicalType{Kind: LogicalString}), leaf("t", &LogicalType{Kind: LogicalTimestamp, UTC: true, Unit: Nanos}),
			leaf("u", &LogicalType{Kind: LogicalTime, Unit: Millis}), leaf("i", &LogicalType{Kind: LogicalInteger, BitWidth: 16, Signed: true}),
			leaf("v", &LogicalType{Kind: LogicalVariant, SpecVersion: 1}), leaf("g", &LogicalType{Kind: LogicalGeometry, CRS: "OGC:CRS84"}),
			leaf("h", &LogicalType{Kind: LogicalGeography, Algorithm: ptr(int32(1))}), leaf("n", &LogicalType{Kind: LogicalUnknown}), leaf("", nil),
		},
		RowGroups: []RowGroup{
			{Columns: []ColumnChunk{chunk, bare}, TotalByteSize: 5, NumRows: 7, SortingColumns: []SortingColumn{{1, true, false}},
				FileOffset: ptr(int64(4)), TotalCompressedSize: ptr(int64(6)), Ordinal: ptr(int16(3))},
			{Columns: []ColumnChunk{chunk, bare}, NumRows: 7},
		},
		KeyValue: []KeyValue{{"iceberg.schema", ptr("{}")}, {"empty", ptr("")}, {"none", nil}},
	}
}

func TestFooterRoundTrip(t *testing.T) {
	want := wholeFooter()
	b := want.Marshal()
	got, err := UnmarshalFileMetaData(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for i := range b {
		if _, err := UnmarshalFileMetaData(b[:i]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut at %d of %d: %v", i, len(b), err)
		}
	}
}

// A chunk without statistics has no field 12: a zero null count there makes
// engines answer COUNT wrongly.
func TestFooterGolden(t *testing.T) {
	m := &FileMetaData{Version: 1, NumRows: 1, Schema: []SchemaElement{{Name: "s", NumChildren: ptr(int32(1))}, {Type: ptr(Int32), Repetition: ptr(Optional), Name: "a"}},
		RowGroups: []RowGroup{{NumRows: 1, TotalByteSize: 30, Columns: []ColumnChunk{{MetaData: &ColumnMetaData{Type: Int32, Encodings: []Encoding{Plain},
			Path: []string{"a"}, NumValues: 1, TotalUncompressedSize: 30, TotalCompressedSize: 30, DataPageOffset: 4}}}}},
		CreatedBy: ptr("i"), ColumnOrders: 1}
	want := unhex(t, `15 02  19 2c 48 01 73 15 02 00  15 02 25 02 18 01 61 00  16 02
		19 1c  19 1c  26 00 1c 15 02 19 15 00 19 18 01 61 15 00 16 02 16 3c 16 3c 26 08 00 00  16 3c 16 02 00
		28 01 69  19 1c 1c 00 00  00`)
	if got := m.Marshal(); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	m.RowGroups[0].Columns[0].MetaData.Statistics = &Statistics{}
	if got := m.Marshal(); !bytes.Contains(got, unhex(t, "26 08 3c 00")) {
		t.Errorf("an empty Statistics struct is not written as one: %x", got)
	}
}

func TestFooterSharesPaths(t *testing.T) {
	m, err := UnmarshalFileMetaData(wholeFooter().Marshal())
	if err != nil {
		t.Fatal(err)
	}
	a, b := m.RowGroups[0].Columns[0].MetaData.Path, m.RowGroups[1].Columns[0].MetaData.Path
	if &a[0] != &b[0] {
		t.Error("equal paths of two row groups are not shared")
	}
}

func BenchmarkFooter(b *testing.B) {
	m := wholeFooter()
	g := m.RowGroups[0]
	g.Columns = nil
	for range 100 {
		c := wholeFooter().RowGroups[0].Columns[0]
		c.MetaData.Statistics.MaxValue = []byte("12345678")
		g.Columns = append(g.Columns, c)
	}
	m.RowGroups = nil
	for range 200 {
		m.RowGroups = append(m.RowGroups, g)
	}
	enc := m.Marshal()
	b.Run("unmarshal 20000 chunks", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := UnmarshalFileMetaData(enc); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("marshal 20000 chunks", func(b *testing.B) {
		for b.Loop() {
			m.Marshal()
		}
	})
}
