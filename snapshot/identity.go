package snapshot

import "github.com/apache/iceberg-go"

// ID is the public identity of a view: equal IDs mean equal bytes, on every
// machine.
type ID [16]byte

// Inode returns 63 bits of the ID, never 0, 1 or ^0.
func (id ID) Inode() uint64 { panic("skeleton") }

// Generation returns the other 64 bits.
func (id ID) Generation() uint64 { panic("skeleton") }

// String returns the ID in hexadecimal (an ETag).
func (id ID) String() string { panic("skeleton") }

// Identity is what determines a view's bytes.
type Identity struct {
	UUID        string
	SnapshotID  int64
	View        string   // which file: "data.parquet", "parts/<name>", …
	Files       [32]byte // Plan.Digest, or File.Digest for a part
	Schema      *iceberg.Schema
	NameMapping iceberg.NameMapping
	Layout      int    // merge.LayoutFormat
	Options     string // options that change bytes, spelled out
}

// ID hashes the identity.
func (i *Identity) ID() ID { panic("skeleton") }

// Digest hashes the paths, sequence numbers and delete sets of all files.
func (p *Plan) Digest() [32]byte { panic("skeleton") }

// Digest hashes the file's path, sequence number and delete set.
func (f *File) Digest() [32]byte { panic("skeleton") }

// DeleteKey spells out the delete set of f: equal keys mean equal deletes.
func (f *File) DeleteKey() string { panic("skeleton") }

// HashID hashes parts that are no view: folders, links, metadata files.
func HashID(parts ...string) ID { panic("skeleton") }
