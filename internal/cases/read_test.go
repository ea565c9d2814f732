package cases

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/icefs/icefs/internal/viewtest"
)

// csv is a view's text.
func csv(t *testing.T, v viewtest.View) string {
	t.Helper()
	return string(viewtest.Bytes(t, v))
}

// openView opens a Parquet view with an independent reader.
func openView(t *testing.T, v viewtest.View) *file.Reader {
	t.Helper()
	r, err := file.NewParquetReader(bytes.NewReader(viewtest.Bytes(t, v)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// parquetRows is the number of rows that a Parquet view's footer states.
func parquetRows(t *testing.T, v viewtest.View) int64 {
	t.Helper()
	return openView(t, v).NumRows()
}
