package pqfile

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/icefs/icefs/internal/source"
)

// onTheWay is an object whose bytes are damaged until it is told so often enough.
type onTheWay struct {
	*memory
	at      int64 // of the damaged byte
	healing int   // how often it has yet to be told
	told    int
}

var _ source.Suspected = (*onTheWay)(nil)

func (o *onTheWay) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := o.memory.ReadAt(ctx, p, off)
	if i := o.at - off; o.told < o.healing && i >= 0 && i < int64(n) {
		p[i] ^= 1
	}
	return n, err
}

func (o *onTheWay) Suspect() bool {
	o.told++
	return true
}

// A page whose checksum does not fit is read once more from where damage may have
// come about on the way.
func TestDamagedOnTheWay(t *testing.T) {
	page, body := v1(2, Plain), []byte{1, 0, 0, 0, 2, 0, 0, 0}
	page.CRC = ptr(int32(crc32.ChecksumIEEE(body)))
	for _, healing := range []int{0, 1, 2} {
		m := required(Int32)
		m.page(page, body...)
		o := &onTheWay{memory: &memory{data: m.bytes()}, healing: healing}
		o.at = int64(bytes.Index(o.data, body))
		c := firstChunk(t, open(t, o))
		p, err := c.Scan(c.Start, c.Start+c.Length).Next(t.Context())
		if healing == 2 {
			if !errors.Is(err, ErrCorrupt) || o.told != 1 {
				t.Errorf("damaged twice: %v, told %d times", err, o.told)
			}
			continue
		}
		if err != nil || !bytes.Equal(p.Body, body) || o.told != healing {
			t.Errorf("damaged %d times: %v, told %d times", healing, err, o.told)
		}
	}
}
