package pqfile

import "encoding/binary"

// streamSplit decodes BYTE_STREAM_SPLIT: first the lowest byte of every value,
// then the second of every value, and so on.
func (d *PageDecoder) streamSplit(node *Node, src []byte, n int) (Values, error) {
	width := fixedWidth(node)
	if width <= 0 || len(src)%width != 0 || len(src)/width < n {
		return Values{}, errShort(n)
	}
	stride := len(src) / width // of a stream: it may hold more than n
	d.fixed = grow(d.fixed, n*width)
	switch width {
	case 4:
		joinStreams4(d.fixed, src, stride)
	case 8:
		joinStreams8(d.fixed, src, stride)
	default:
		for b := range width {
			stream := src[b*stride:][:n]
			for i, c := range stream {
				d.fixed[i*width+b] = c
			}
		}
	}
	return Values{Type: node.Type, Width: width, N: n, Fixed: d.fixed}, nil
}

func joinStreams4(dst, src []byte, stride int) {
	n := len(dst) / 4
	s0, s1, s2, s3 := src[:n], src[stride:][:n], src[2*stride:][:n], src[3*stride:][:n]
	for i := range s0 {
		v := uint32(s0[i]) | uint32(s1[i])<<8 | uint32(s2[i])<<16 | uint32(s3[i])<<24
		binary.LittleEndian.PutUint32(dst[4*i:], v)
	}
}

func joinStreams8(dst, src []byte, stride int) {
	n := len(dst) / 8
	s0, s1, s2, s3 := src[:n], src[stride:][:n], src[2*stride:][:n], src[3*stride:][:n]
	s4, s5, s6, s7 := src[4*stride:][:n], src[5*stride:][:n], src[6*stride:][:n], src[7*stride:][:n]
	for i := range s0 {
		lo := uint32(s0[i]) | uint32(s1[i])<<8 | uint32(s2[i])<<16 | uint32(s3[i])<<24
		hi := uint32(s4[i]) | uint32(s5[i])<<8 | uint32(s6[i])<<16 | uint32(s7[i])<<24
		binary.LittleEndian.PutUint64(dst[8*i:], uint64(lo)|uint64(hi)<<32)
	}
}
