// Package cases holds tests of what readers of Iceberg tables have got wrong in
// public: each builds a table of the kind and states the right rows. It has no
// code besides its tests.
package cases
