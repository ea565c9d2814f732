// Package scale measures what grows with a table's files and history: pairing,
// planning, live ranges and the folders of a long history. Its benchmarks report
// ratios, each against a peer or a smaller case in the same run, and the limit that
// each is to keep:
//
//	go test ./bench/scale -run '^$' -bench . -benchtime 1x -timeout 60m
//
// What is not a benchmark here writes the tables that they measure: metadata,
// manifest lists and manifests, made directly rather than by commits. Data files
// are named but not written, unless a table is to be read.
package scale
