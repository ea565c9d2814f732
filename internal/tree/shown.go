package tree

import (
	"fmt"
	"strings"
)

// Shown selects the data files of a snapshot's folder.
type Shown struct {
	Parquet, CSV, JSONL         bool
	Parts, PartsCSV, PartsJSONL bool
}

// DefaultShown is every form, and parts as Parquet.
func DefaultShown() Shown {
	return Shown{Parquet: true, CSV: true, JSONL: true, Parts: true}
}

// ParseShown reads a comma-separated list of parquet, csv, jsonl, parts,
// parts.csv and parts.jsonl.
func ParseShown(list string) (Shown, error) {
	var s Shown
	for name := range strings.SplitSeq(list, ",") {
		switch strings.TrimSpace(name) {
		case "parquet":
			s.Parquet = true
		case "csv":
			s.CSV = true
		case "jsonl":
			s.JSONL = true
		case "parts":
			s.Parts = true
		case "parts.csv":
			s.PartsCSV = true
		case "parts.jsonl":
			s.PartsJSONL = true
		default:
			return s, fmt.Errorf("unknown view %q: want parquet, csv, jsonl, parts, parts.csv or parts.jsonl", name)
		}
	}
	return s, nil
}
