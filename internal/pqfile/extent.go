package pqfile

import "slices"

// shortChunkSlack is how much parquet-mr before 1.2.9 may have left out of a
// chunk's size: the dictionary page's header.
const shortChunkSlack = 100

// chunkExtent mends what writers get wrong about a chunk's place:
//
//	dictionary_page_offset = data_page_offset    one start
//	dictionary_page_offset > data_page_offset    swapped: the lower is the start
//	dictionary_page_offset zero                  absent
//	dictionary_page_offset absent                data_page_offset, which mostly is
//	    the dictionary's; if it is the first data page's, see tileStarts
//	data_page_offset too small                   does not matter: pages are walked
//	total_compressed_size too small              parquet-mr before 1.2.9: reach
//	    into the gap behind
func (f *File) chunkExtent(rowGroup, column int) (start, length int64) {
	m := f.Metadata.RowGroups[rowGroup].Columns[column].MetaData
	length = m.TotalCompressedSize
	if start = certainStart(m); start < 0 {
		f.startsOnce.Do(f.tileStarts)
		start = f.starts[rowGroup*len(f.Schema.Leaves)+column]
	}
	if f.writer.shortChunks() {
		length = max(length, min(length+shortChunkSlack, f.landmarkAfter(start+length-1)-start))
	}
	return start, length
}

// certainStart is where a chunk's pages start by its own metadata, or -1 if it
// may have a dictionary page of which the offset is not known.
func certainStart(m *ColumnMetaData) int64 {
	dictionary := m.DictionaryPageOffset
	switch {
	case dictionary != nil && *dictionary >= int64(len(magic)):
		if m.DataPageOffset < int64(len(magic)) {
			return *dictionary
		}
		return min(*dictionary, m.DataPageOffset)
	case slices.Contains(m.Encodings, PlainDictionary), slices.Contains(m.Encodings, RLEDictionary):
		return -1
	}
	return m.DataPageOffset
}

// tileStarts finds the starts of the chunks that have none for certain. Writers
// that leave the dictionary's offset out mostly give it as the data's. Where it
// is the first data page's instead, a run of such chunks still lies without
// gaps between what is certain before and after it: then each starts where the
// one before ends. Without such a fit data_page_offset stands.
func (f *File) tileStarts() {
	var chunks []*ColumnMetaData
	for i := range f.Metadata.RowGroups {
		for j := range f.Metadata.RowGroups[i].Columns {
			m := f.Metadata.RowGroups[i].Columns[j].MetaData
			if m == nil {
				m = &ColumnMetaData{}
			}
			chunks = append(chunks, m)
		}
	}
	f.starts = make([]int64, len(chunks))
	end := int64(len(magic)) // of the chunk before
	for i := 0; i < len(chunks); {
		if start := certainStart(chunks[i]); start >= 0 {
			f.starts[i], end = start, start+chunks[i].TotalCompressedSize
			i++
			continue
		}
		run := 1
		for i+run < len(chunks) && certainStart(chunks[i+run]) < 0 {
			run++
		}
		after := f.landmarkAfter(chunks[i+run-1].DataPageOffset)
		tile(chunks[i:i+run], f.starts[i:i+run], end, after)
		i += run
	}
}

// tile sets the starts of a run of chunks that fills the bytes from start to
// end, or leaves them at their data page offsets.
func tile(run []*ColumnMetaData, starts []int64, start, end int64) {
	fits := true
	for i, m := range run {
		starts[i] = start
		fits = fits && m.TotalCompressedSize > 0 && m.TotalCompressedSize <= end-start &&
			m.DataPageOffset >= start && m.DataPageOffset-start < m.TotalCompressedSize
		if !fits {
			break
		}
		start += m.TotalCompressedSize
	}
	if !fits || start != end {
		for i, m := range run {
			starts[i] = m.DataPageOffset
		}
	}
}

// landmarkAfter returns the first place after off at which, by the footer,
// something else starts.
func (f *File) landmarkAfter(off int64) int64 {
	f.landmarksOnce.Do(func() {
		marks := []int64{f.footerStart}
		add := func(off *int64) {
			if off != nil && *off >= int64(len(magic)) && *off < f.footerStart {
				marks = append(marks, *off)
			}
		}
		for i := range f.Metadata.RowGroups {
			for j := range f.Metadata.RowGroups[i].Columns {
				col := &f.Metadata.RowGroups[i].Columns[j]
				add(col.OffsetIndexOffset)
				add(col.ColumnIndexOffset)
				if m := col.MetaData; m != nil {
					add(&m.DataPageOffset)
					add(m.DictionaryPageOffset)
					add(m.BloomFilterOffset)
				}
			}
		}
		slices.Sort(marks)
		f.landmarks = marks
	})
	i, found := slices.BinarySearch(f.landmarks, off)
	for found && i < len(f.landmarks) && f.landmarks[i] == off {
		i++
	}
	if i == len(f.landmarks) {
		return f.footerStart
	}
	return f.landmarks[i]
}
