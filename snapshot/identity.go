package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"strconv"

	"github.com/apache/iceberg-go"
)

// ID is the public identity of a view or a folder: for views, equal IDs mean
// equal bytes, on every machine.
type ID [16]byte

// Inode returns 63 bits of the ID, never 0 or 1.
func (id ID) Inode() uint64 {
	ino := binary.BigEndian.Uint64(id[:8]) >> 1
	if ino <= 1 {
		ino += 2
	}
	return ino
}

// Generation returns the other 64 bits.
func (id ID) Generation() uint64 { return binary.BigEndian.Uint64(id[8:]) }

// String returns the ID in hexadecimal (an ETag without quotes).
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Identity is what determines a view's bytes.
type Identity struct {
	UUID        string // of the table
	SnapshotID  int64
	View        string          // which file: "data.parquet", "parts/<name>", …
	Files       [32]byte        // Plan.Digest, or File.Digest for a part
	Schema      *iceberg.Schema // may be nil
	NameMapping iceberg.NameMapping
	Layout      int    // number of the byte layout
	Options     string // options that change bytes, spelled out
}

// ID hashes the identity.
func (i *Identity) ID() ID {
	// Neither value can fail to marshal: both were unmarshaled from JSON.
	schema, _ := json.Marshal(i.Schema)
	mapping, _ := json.Marshal(i.NameMapping)
	return HashID("view", i.UUID, strconv.FormatInt(i.SnapshotID, 10), i.View, string(i.Files[:]),
		string(schema), string(mapping), strconv.Itoa(i.Layout), i.Options)
}

// HashID hashes parts, in order, to an ID: for what is no view.
func HashID(parts ...string) ID {
	h := newDigest()
	for _, part := range parts {
		h.string(part)
	}
	sum := h.sum()
	return ID(sum[:16])
}

// Digest hashes the paths, sequence numbers and delete sets of all files, in
// order. It costs time linear in the files: keep the result.
func (p *Plan) Digest() [32]byte {
	h := newDigest()
	for i := range p.Files {
		p.Files[i].digest(h)
	}
	return h.sum()
}

// Digest hashes the file's path, sequence number and delete set.
func (f *File) Digest() [32]byte {
	h := newDigest()
	f.digest(h)
	return h.sum()
}

func (f *File) digest(h digest) {
	h.string(f.Path)
	h.int(f.Sequence)
	h.string(f.DeleteKey())
}

// DeleteKey spells out the delete set of f: equal keys mean equal deletes. It
// is empty if there are none.
func (f *File) DeleteKey() string {
	if f.DV == nil && len(f.Positions) == 0 && len(f.Equality) == 0 {
		return ""
	}
	var key []byte
	add := func(kind byte, d *DataFile) {
		key = append(key, kind)
		key = binary.AppendUvarint(key, uint64(len(d.Path)))
		key = append(key, d.Path...)
	}
	if f.DV != nil {
		add('v', f.DV)
		key = binary.AppendVarint(key, f.DV.ContentOffset)
		key = binary.AppendVarint(key, f.DV.ContentSize)
	}
	for _, d := range f.Positions {
		add('p', d)
	}
	for _, d := range f.Equality {
		add('e', d)
		key = binary.AppendUvarint(key, uint64(len(d.EqualityIDs)))
		for _, id := range d.EqualityIDs {
			key = binary.AppendVarint(key, int64(id))
		}
	}
	return string(key)
}

// digest hashes values so that no two sequences of values look alike.
type digest struct{ hash.Hash }

func newDigest() digest { return digest{sha256.New()} }

func (d digest) string(s string) {
	d.int(int64(len(s)))
	d.Write([]byte(s))
}

func (d digest) int(v int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(v))
	d.Write(b[:])
}

func (d digest) sum() (sum [32]byte) {
	d.Sum(sum[:0])
	return sum
}
