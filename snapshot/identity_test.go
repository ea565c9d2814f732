package snapshot

import (
	"testing"

	"github.com/apache/iceberg-go"
)

func TestInodeAvoidsReservedNumbers(t *testing.T) {
	for _, c := range []struct {
		id   ID
		want uint64
	}{
		{ID{}, 2},
		{ID{7: 1}, 2},
		{ID{7: 2}, 3},
		{ID{7: 4}, 2},
		{ID{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 1<<63 - 1},
	} {
		if got := c.id.Inode(); got != c.want {
			t.Errorf("%s: inode %d, want %d", c.id, got, c.want)
		}
	}
	if got := (ID{15: 9}).Generation(); got != 9 {
		t.Errorf("generation %d", got)
	}
}

func TestIdentityDependsOnWhatItSays(t *testing.T) {
	schema := func(id int, name string) *iceberg.Schema {
		return iceberg.NewSchema(id, iceberg.NestedField{ID: 1, Name: name, Type: iceberg.PrimitiveTypes.Int64})
	}
	base := Identity{UUID: "u", SnapshotID: 1, View: "data.parquet", Schema: schema(0, "a"), Layout: 1, Options: "o"}
	same := base
	same.Schema = schema(0, "a")
	if base.ID() != same.ID() {
		t.Error("equal identities have different IDs")
	}
	// A fixed value: it changes only together with every inode of every mount.
	if got := base.ID().String(); got != goldenID {
		t.Errorf("ID = %s, want %s", got, goldenID)
	}
	seen := map[ID]string{base.ID(): "base"}
	for name, change := range map[string]func(*Identity){
		"uuid":      func(i *Identity) { i.UUID = "v" },
		"snapshot":  func(i *Identity) { i.SnapshotID = 2 },
		"view":      func(i *Identity) { i.View = "data.csv" },
		"files":     func(i *Identity) { i.Files[31] = 1 },
		"schema":    func(i *Identity) { i.Schema = schema(0, "b") },
		"no schema": func(i *Identity) { i.Schema = nil },
		"mapping":   func(i *Identity) { i.NameMapping = iceberg.NameMapping{{Names: []string{"a"}}} },
		"layout":    func(i *Identity) { i.Layout = 2 },
		"options":   func(i *Identity) { i.Options = "" },
		"shifted":   func(i *Identity) { i.UUID, i.View = "udata", ".parquet" },
	} {
		i := base
		change(&i)
		if other, ok := seen[i.ID()]; ok {
			t.Errorf("%s and %s have one ID", name, other)
		}
		seen[i.ID()] = name
	}
}

const goldenID = "9664730049aac4593f2dd01617657b37"

func TestDigestsAndDeleteKeys(t *testing.T) {
	d := file(Data, "a", 1)
	variants := map[string]File{
		"plain":          {DataFile: d},
		"other path":     {DataFile: file(Data, "b", 1)},
		"other sequence": {DataFile: file(Data, "a", 2)},
		"dv":             {DataFile: d, DV: vector("v", 2)},
		"dv elsewhere":   {DataFile: d, DV: vector("v", 2, func(f *DataFile) { f.EncryptedKey = true })},
		"position":       {DataFile: d, Positions: []*DataFile{file(PositionDeletes, "v", 2)}},
		"two":            {DataFile: d, Positions: []*DataFile{file(PositionDeletes, "v", 2), file(PositionDeletes, "w", 2)}},
		"equality":       {DataFile: d, Equality: []*DataFile{equality("v", 2, []int{1})}},
		"other ids":      {DataFile: d, Equality: []*DataFile{equality("v", 2, []int{1, 2})}},
	}
	elsewhere := vector("v", 2)
	elsewhere.ContentOffset = 99
	variants["dv elsewhere"] = File{DataFile: d, DV: elsewhere}
	digests, keys := map[[32]byte]string{}, map[string]string{}
	for name, f := range variants {
		if other, ok := digests[f.Digest()]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		digests[f.Digest()] = name
		if f.Path != "a" || f.Sequence != 1 || name == "plain" {
			continue
		}
		if other, ok := keys[f.DeleteKey()]; ok {
			t.Errorf("%s and %s have one delete key", name, other)
		}
		keys[f.DeleteKey()] = name
	}
	plain := variants["plain"]
	if plain.DeleteKey() != "" {
		t.Error("a file without deletes has a delete key")
	}
	a, b := variants["plain"], variants["dv"]
	if (&Plan{Files: []File{a, b}}).Digest() == (&Plan{Files: []File{b, a}}).Digest() {
		t.Error("the digest of a plan ignores the order")
	}
	if (&Plan{Files: []File{a}}).Digest() == (&Plan{}).Digest() {
		t.Error("the digest of a plan ignores a file")
	}
}
