package reference

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/parquet"

	"github.com/icefs/icefs/internal/pqfile"
	"github.com/icefs/icefs/internal/source"
)

// hadoopDecoder reads the chunks of obj that arrow-go has no codec for, by
// package pqfile's pages.
func hadoopDecoder(ctx context.Context, obj source.Object) func(group, leaf int) (column, error) {
	var open *pqfile.File
	return func(group, leaf int) (c column, err error) {
		if open == nil {
			if open, err = pqfile.Open(ctx, obj, pqfile.Options{}); err != nil {
				return c, err
			}
		}
		chunk, err := open.Chunk(group, open.Schema.Leaves[leaf])
		if err != nil {
			return c, err
		}
		decoder := chunk.NewDecoder()
		defer decoder.Release()
		pages := chunk.Scan(chunk.Start, chunk.Start+chunk.Length)
		for {
			page, err := pages.Next(ctx)
			switch {
			case errors.Is(err, io.EOF):
				return c, nil
			case err != nil:
				return c, err
			case page.Header.Type == pqfile.DictionaryPage:
				err = decoder.SetDictionary(page)
			case page.Header.Type == pqfile.DataPage || page.Header.Type == pqfile.DataPageV2:
				err = c.addPage(decoder, page, chunk.Node)
			}
			if err != nil {
				return c, err
			}
		}
	}
}

// addPage appends the entries of a data page.
func (c *column) addPage(decoder *pqfile.PageDecoder, page *pqfile.RawPage, node *pqfile.Node) error {
	data, err := decoder.Uncompress(page)
	if err != nil {
		return err
	}
	rep, def, err := decoder.Levels(&data)
	if err != nil {
		return err
	}
	present := 0
	for i := range data.NumValues {
		d, r := int16(node.MaxDef), int16(0)
		if def != nil {
			d = int16(def[i])
		}
		if rep != nil {
			r = int16(rep[i])
		}
		if int(d) == node.MaxDef {
			present++
		}
		c.def, c.rep = append(c.def, d), append(c.rep, r)
	}
	values, err := decoder.Values(&data, present)
	if err != nil {
		return err
	}
	for i := range present {
		v, err := boxed(&values, i)
		if err != nil {
			return err
		}
		c.values = append(c.values, v)
	}
	return nil
}

// boxed is the i-th value in arrow-go's form.
func boxed(v *pqfile.Values, i int) (any, error) {
	if v.Dict != nil {
		return boxed(v.Dict, int(v.Index[i]))
	}
	var b []byte
	switch {
	case v.Bools != nil:
		return v.Bools[i] != 0, nil
	case v.Offsets != nil:
		return append([]byte{}, v.Data[v.Offsets[i]:v.Offsets[i+1]]...), nil
	default:
		b = v.Fixed[i*v.Width : (i+1)*v.Width]
	}
	switch v.Type {
	case pqfile.Int32:
		return int32(binary.LittleEndian.Uint32(b)), nil
	case pqfile.Int64:
		return int64(binary.LittleEndian.Uint64(b)), nil
	case pqfile.Float:
		return math.Float32frombits(binary.LittleEndian.Uint32(b)), nil
	case pqfile.Double:
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
	case pqfile.Int96:
		return parquet.Int96(b), nil
	case pqfile.FixedLenByteArray:
		return append([]byte{}, b...), nil
	}
	return nil, fmt.Errorf("physical type %d: %w", v.Type, ErrUnsupported)
}
