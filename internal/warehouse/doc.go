// Package warehouse finds tables and reads what describes them: folders with
// metadata files, single metadata files, and SQLite catalogs; table metadata,
// manifest lists and manifests. It builds the values of package snapshot.
//
//	Open(source) -> Catalog -> Namespace -> Table -> Loaded
//
// A Catalog, its namespaces and its tables are re-read when they are asked and
// older than the refresh interval. A Loaded is a table at one metadata version:
// immutable, and the same pointer as long as the metadata file has not changed.
//
// Metadata is untrusted. What it names is opened through a source.Store that
// reaches only the source's own folder, a catalog's warehouse, and the allowed
// paths; a table that was moved since it was written is found by comparing the
// folder its metadata lies in with the one it was written for.
//
// All types are safe for concurrent use.
package warehouse
