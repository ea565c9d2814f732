// Package cases holds tests of what readers of Iceberg tables have got wrong in
// public: each builds a table of the kind and states the right rows. It has no
// code besides its tests, which are by subject:
//
//	tables_test.go    statistics, partition columns not stored, moved tables, name mappings, empty row groups,
//	                  renamed and replaced columns, metadata of old and foreign writers, no current snapshot
//	metadata_test.go  the newest metadata file, lengths that manifest lists state, formats, types of version 3
//	deletes_test.go   vectors, positions and equality deletes: scope, sequence, NULL, NaN, shapes of the files
//	keys_test.go      several keys of one file, keys across promotions
//	vectors_test.go   vectors outside Puffin files, containers of every kind
//	footers_test.go   page offsets, sizes of chunks, footer-wide fields, Bloom filters and indexes
//	pages_test.go     dictionary fallback, empty and uncompressed pages, codecs that cannot be decoded
//	huge_test.go      more than 2 GiB of text in a row group
//	imports_test.go   old shapes of lists, INT96, physical forms, Hadoop's LZ4
//	columns_test.go   partition constants, nested mappings, text forms of every type, names, numbers
//	text_test.go      quoting, time zones
//	paths_test.go     odd paths, orphans, a commit while files are open
//
// What takes a mount, a cache or an engine to be seen is tested where that is:
// exact sizes, memory maps, inodes, seeks in long listings and interrupts in fs;
// stable times and archives, stopping, commits and a thousand open files in
// cmd/icefs; memory of hostile vectors in deletes; ties between metadata files
// and manifests that were cut in internal/warehouse; what engines answer in
// internal/engines.
package cases
