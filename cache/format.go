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
//	0      the value
//	n      4 bytes of checksum for each block of 16 KiB of it
//	end-52 trailer: 8  magic "icefsC02"
//	                32 SHA-256 of the key
//	                8  n, length of the value
//	                4  CRC-32C of the trailer so far
//
// A block's checksum is the CRC-32C of the key's hash, the block's number (8
// bytes) and its bytes, so that a block of another entry or another place does
// not pass. The file's length has to be the one that the trailer implies: a torn
// or appended file is damaged. Blocks lie as they are in the value, so that they
// are read to where they are wanted, and are short enough that a read of parts of
// two of them costs little more than its bytes.
const (
	magic      = "icefsC02"
	trailerLen = 52
	blockLen   = 16 << 10
	tailLen    = 4 << 10 // read when an entry is opened: all of a short one
	maxValue   = 1 << 46 // keeps the arithmetic on lengths far from overflow
)

// errDamaged is wrapped by every error about an entry's bytes.
var errDamaged = errors.New("damaged cache entry")

// sumsLen is the length of the checksums of a value of n bytes.
func sumsLen(n int64) int64 { return (n + blockLen - 1) / blockLen * crc32.Size }

// storedSize is the length of the file of a value of n bytes.
func storedSize(n int64) int64 { return n + sumsLen(n) + trailerLen }

func trailer(hash [sha256.Size]byte, n int64) []byte {
	b := make([]byte, 0, trailerLen)
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

// appendSums appends the checksums of blocks, of which b is the first and those
// that follow it; the last may be a short one.
func appendSums(sums []byte, hash [sha256.Size]byte, first int64, b []byte) []byte {
	for ; len(b) > 0; first++ {
		k := min(len(b), blockLen)
		sums = binary.LittleEndian.AppendUint32(sums, blockSum(hash, first, b[:k]))
		b = b[k:]
	}
	return sums
}

// Entry is an open value of a Disk. It stays readable after it was evicted.
// Safe for concurrent use.
type Entry struct {
	disk  *Disk
	file  *os.File
	hash  [sha256.Size]byte
	size  int64
	sums  []byte
	whole []byte // the value, if it is short; not checked yet
}

// Size is the value's length in bytes.
func (e *Entry) Size() int64 { return e.size }

// Close closes the entry.
func (e *Entry) Close() error { return e.file.Close() }

// readTail checks the trailer and the file's length, and renews the access time
// if it is old.
func (e *Entry) readTail() error {
	fi, err := e.file.Stat()
	if err != nil {
		return err
	}
	if fi.Size() < trailerLen {
		return fmt.Errorf("%w: %d bytes on disk", errDamaged, fi.Size())
	}
	tail := make([]byte, min(fi.Size(), tailLen))
	if _, err := e.file.ReadAt(tail, fi.Size()-int64(len(tail))); err != nil {
		return fmt.Errorf("%w: trailer: %w", errDamaged, err)
	}
	end := len(tail) - trailerLen
	n := binary.LittleEndian.Uint64(tail[end+40:])
	if n > maxValue || !bytes.Equal(tail[end:], trailer(e.hash, int64(n))) {
		return fmt.Errorf("%w: trailer", errDamaged)
	}
	if fi.Size() != storedSize(int64(n)) {
		return fmt.Errorf("%w: %d bytes on disk for a value of %d", errDamaged, fi.Size(), n)
	}
	e.size = int64(n)
	if k := sumsLen(e.size); k <= int64(end) {
		e.sums = bytes.Clone(tail[end-int(k) : end])
	} else {
		e.sums = make([]byte, k) // less than the file has
		if _, err := e.file.ReadAt(e.sums, e.size); err != nil {
			return fmt.Errorf("%w: checksums: %w", errDamaged, err)
		}
	}
	if fi.Size() == int64(len(tail)) {
		e.whole = tail[:e.size]
	}
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
	want := int(min(int64(len(p)), max(e.size-off, 0)))
	for n < want {
		pos := off + int64(n)
		if k := e.wholeBlocks(pos, want-n); k > 0 {
			if err := e.blocks(p[n:n+k], pos); err != nil {
				return n, err
			}
			n += k
			continue
		}
		start := pos / blockLen * blockLen
		k, err := e.partOf(p[n:want], start, int(pos-start))
		if err != nil {
			return n, err
		}
		n += k
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// wholeBlocks is how many of the n bytes from pos on are blocks as a whole.
func (e *Entry) wholeBlocks(pos int64, n int) int {
	switch {
	case pos%blockLen != 0:
		return 0
	case pos+int64(n) == e.size:
		return n
	}
	return n / blockLen * blockLen
}

// partOf fills p from a place in the block that starts at start.
func (e *Entry) partOf(p []byte, start int64, from int) (int, error) {
	buf, _ := e.disk.scratch.Get().(*[blockLen]byte)
	if buf == nil {
		buf = new([blockLen]byte)
	}
	defer e.disk.scratch.Put(buf)
	block := buf[:min(blockLen, e.size-start)]
	if err := e.blocks(block, start); err != nil {
		return 0, err
	}
	return copy(p, block[from:]), nil
}

// blocks reads blocks, from start on, and checks them.
func (e *Entry) blocks(p []byte, start int64) error {
	if e.whole != nil {
		copy(p, e.whole[start:])
	} else if _, err := e.file.ReadAt(p, start); errors.Is(err, os.ErrClosed) {
		return err
	} else if err != nil {
		return e.damaged(fmt.Errorf("%w: %d bytes at %d: %w", errDamaged, len(p), start, err))
	}
	for i := start / blockLen; len(p) > 0; i++ {
		k := min(len(p), blockLen)
		if binary.LittleEndian.Uint32(e.sums[i*crc32.Size:]) != blockSum(e.hash, i, p[:k]) {
			return e.damaged(fmt.Errorf("%w: checksum of block %d", errDamaged, i))
		}
		p = p[k:]
	}
	return nil
}

// damaged removes the entry and logs why.
func (e *Entry) damaged(err error) error {
	e.disk.remove(e.hash)
	e.disk.log.Warn("cache entry removed", "file", fileOf(e.hash), "err", err)
	return err
}
