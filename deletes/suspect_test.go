package deletes

import (
	"context"
	"errors"
	"testing"

	"github.com/apache/iceberg-go"

	"github.com/icefs/icefs/internal/source"
	"github.com/icefs/icefs/snapshot"
)

// onTheWay is a store whose objects are damaged until they are told so often
// enough.
type onTheWay struct {
	*memStore
	healing, told int
}

type damaged struct {
	source.Object
	store *onTheWay
}

var _ source.Suspected = (*damaged)(nil)

func (s *onTheWay) Open(ctx context.Context, location string) (source.Object, error) {
	o, err := s.memStore.Open(ctx, location)
	return &damaged{o, s}, err
}

func (o *damaged) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := o.Object.ReadAt(ctx, p, off)
	if n > 0 && o.store.told < o.store.healing {
		p[n/2] ^= 1
	}
	return n, err
}

func (o *damaged) Suspect() bool {
	o.store.told++
	return true
}

// A deletion vector that does not fit its checksum is read once more from where
// damage may have come about on the way.
func TestVectorDamagedOnTheWay(t *testing.T) {
	for _, healing := range []int{0, 1, 2} {
		l := newLab(iceberg.NewSchema(0, field(1, "v", iceberg.PrimitiveTypes.Int64)))
		blob := blobOf(encode(t, []int64{1, 2}, false))
		l.files["vectors"] = blob
		l.file.DV = &snapshot.DataFile{Path: "vectors", Content: snapshot.PositionDeletes, Format: snapshot.Puffin,
			ContentSize: int64(len(blob)), Records: 2, Referenced: "data", HasReferenced: true}
		s := &onTheWay{memStore: l.memStore, healing: healing}
		p, err := NewResolver(Options{}).Resolve(t.Context(), l.table, s, &l.file)
		if healing == 2 {
			if !errors.Is(err, ErrCorrupt) || s.told != 1 {
				t.Errorf("damaged twice: %v, told %d times", err, s.told)
			}
			continue
		}
		if err != nil || p.Count() != 2 || s.told != healing {
			t.Errorf("damaged %d times: %v, told %d times", healing, err, s.told)
		}
	}
}
