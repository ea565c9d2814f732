package main

// Database drivers of SQL catalogs.
import _ "modernc.org/sqlite"
