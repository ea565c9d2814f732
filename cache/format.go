package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"
)

// An entry's file, integers little-endian:
//
//	0   8  magic "icefsC01"
//	8  32  SHA-256 of the key
//	40  8  length of the value
//	48  4  CRC-32C of bytes 0..48
//	52     blocks: up to 64 KiB of the value, then 4 bytes of checksum
//
// A block's checksum is the CRC-32C of the key's hash, the block's number (8
// bytes) and its bytes, so that a block of another entry or another place does
// not pass. The file's length has to be the one that the header implies: a torn
// or appended file is damaged.
const (
	magic      = "icefsC01"
	headerLen  = 52
	blockLen   = 64 << 10
	storedLen  = blockLen + crc32.Size
	maxValue   = 1 << 46 // keeps the arithmetic on lengths far from overflow
	readBlocks = 16      // blocks read at once
)

// errDamaged is wrapped by every error about an entry's bytes.
var errDamaged = errors.New("damaged cache entry")

// storedSize is the length of the file of a value of n bytes.
func storedSize(n int64) int64 {
	return headerLen + n + (n+blockLen-1)/blockLen*crc32.Size
}

func header(hash [sha256.Size]byte, n int64) []byte {
	b := make([]byte, 0, headerLen)
	b = append(b, magic...)
	b = append(b, hash[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(n))
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// blockSum is the checksum of block number i of an entry.
func blockSum(hash [sha256.Size]byte, i int64, b []byte) uint32 {
	var seed [sha256.Size + 8]byte
	copy(seed[:], hash[:])
	binary.LittleEndian.PutUint64(seed[sha256.Size:], uint64(i))
	return crc32.Update(checksum(seed[:]), crc32.MakeTable(crc32.Castagnoli), b)
}

// Entry is an open value of a Disk. It stays readable after it was evicted.
// Safe for concurrent use.
type Entry struct {
	disk *Disk
	file *os.File
	hash [sha256.Size]byte
	size int64
}

// Size is the value's length in bytes.
func (e *Entry) Size() int64 { return e.size }

// Close closes the entry.
func (e *Entry) Close() error { return e.file.Close() }

// readHeader checks the header and the file's length, and renews the access
// time if it is old.
func (e *Entry) readHeader() error {
	fi, err := e.file.Stat()
	if err != nil {
		return err
	}
	var h [headerLen]byte
	if _, err := e.file.ReadAt(h[:], 0); err != nil {
		return fmt.Errorf("%w: header: %w", errDamaged, err)
	}
	n := binary.LittleEndian.Uint64(h[40:])
	if n > maxValue || !bytes.Equal(h[:], header(e.hash, int64(n))) {
		return fmt.Errorf("%w: header", errDamaged)
	}
	if fi.Size() != storedSize(int64(n)) {
		return fmt.Errorf("%w: %d bytes on disk for a value of %d", errDamaged, fi.Size(), n)
	}
	e.size = int64(n)
	if time.Since(fi.ModTime()) > touchAfter {
		e.disk.touch(e.hash)
	}
	return nil
}

// ReadAt reads from the value; only blocks whose checksum holds are given. As
// with any io.ReaderAt, n < len(p) comes with an error, io.EOF at the end. A
// damaged entry is removed from the store.
func (e *Entry) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("negative offset")
	}
	want := min(int64(len(p)), max(e.size-off, 0))
	var buf []byte
	for int64(n) < want {
		pos := off + int64(n)
		first := pos / blockLen
		last := min((off+want-1)/blockLen, first+readBlocks-1)
		if buf == nil {
			buf = make([]byte, (last-first+1)*storedLen)
		}
		blocks, err := e.blocks(buf, first, last)
		if err != nil {
			return n, err
		}
		for i := first; i <= last && int64(n) < want; i++ {
			b := blocks[(i-first)*storedLen:]
			b = b[:min(len(b), storedLen)-crc32.Size]
			n += copy(p[n:want], b[off+int64(n)-i*blockLen:])
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// blocks reads and checks the stored blocks first to last.
func (e *Entry) blocks(buf []byte, first, last int64) ([]byte, error) {
	start := headerLen + first*storedLen
	buf = buf[:min((last+1-first)*storedLen, storedSize(e.size)-start)]
	if _, err := e.file.ReadAt(buf, start); err != nil {
		err = fmt.Errorf("%w: blocks %d to %d: %w", errDamaged, first, last, err)
		e.damaged(err)
		return nil, err
	}
	for i := first; i <= last; i++ {
		b := buf[(i-first)*storedLen:]
		b = b[:min(len(b), storedLen)]
		body, sum := b[:len(b)-crc32.Size], b[len(b)-crc32.Size:]
		if binary.LittleEndian.Uint32(sum) != blockSum(e.hash, i, body) {
			err := fmt.Errorf("%w: checksum of block %d", errDamaged, i)
			e.damaged(err)
			return nil, err
		}
	}
	return buf, nil
}

// damaged removes the entry and logs why.
func (e *Entry) damaged(err error) {
	e.disk.remove(e.hash)
	e.disk.log.Warn("cache entry removed", "file", fileOf(e.hash), "err", err)
}
