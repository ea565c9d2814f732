#!/usr/bin/env python3
"""Read every snapshot of a folder of recorded tables through an icefs mount with several engines and compare all values.

usage: engines.py --icefs BIN --tables DIR [--only GLOB,…] [--mount-args "…"]

DIR holds warehouse/ and expected/<table>/ (index.json, <snapshot>.jsonl.gz, <snapshot>.schema.json), as testdata/ does.
Engines: pyarrow, DuckDB, Polars, DataFusion; fastparquet for flat columns of files that it reads rightly as raw files.
For each also IS NULL counts and min/max per column against the rows (answers that engines take from footers).
Prints a line a failure and 'N passed, M failed'; exits 1 on a failure or when nothing was read.
"""
import fnmatch, json, sys

import datafusion, duckdb, fastparquet, polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from rows import difference, engine_rows, engine_values, expected_rows
from tables import Checks, arguments, snapshots


def read_pyarrow(path):
    return pa.parquet.read_table(path, page_checksum_verification=True)


def read_duckdb(path):
    return duckdb.connect().sql(f"select * from read_parquet('{path}', hive_partitioning=false)").to_arrow_table()


def read_polars(path):
    return polars.read_parquet(path, hive_partitioning=False, glob=False).to_arrow()


def read_datafusion(path):
    return datafusion.SessionContext().read_parquet(path).to_arrow_table()


ENGINES = {"pyarrow": read_pyarrow, "duckdb": read_duckdb, "polars": read_polars, "datafusion": read_datafusion}


def null_counts(path, schema):
    """NULLs per column as each SQL engine counts them, which may come from the footer alone"""
    names = [f["name"] for f in schema["fields"]]
    quoted = ['"' + n.replace('"', '""') + '"' for n in names]
    select = ", ".join(f"count(*) - count({q})" for q in quoted)
    where = [f"select count(*) from t where {q} is null" for q in quoted]
    con = duckdb.connect()
    con.sql(f"create view t as select * from read_parquet('{path}', hive_partitioning=false)")
    ctx = datafusion.SessionContext()
    ctx.register_parquet("t", path)
    yield "duckdb", list(con.sql(f"select {select} from t").fetchone())
    yield "duckdb is null", [con.sql(w).fetchone()[0] for w in where]
    yield "datafusion", [c[0].as_py() for c in ctx.sql(f"select {select} from t").to_arrow_table().columns]
    yield "datafusion is null", [ctx.sql(w).to_arrow_table().column(0)[0].as_py() for w in where]
    if not refused("polars", schema):
        lazy = polars.scan_parquet(path, hive_partitioning=False, glob=False)
        yield "polars is null", [lazy.filter(polars.col(n).is_null()).select(polars.len()).collect().item() for n in names]
    ds = pa.dataset.dataset(path, format="parquet")
    yield "pyarrow is null", [ds.count_rows(filter=pa.dataset.field(n).is_null()) for n in names]


ORDERED = ("int", "long", "date", "timestamp", "timestamptz")


def extremes(path, fields):
    """min and max per column of an ordered type, as integers"""
    con = duckdb.connect()
    ctx = datafusion.SessionContext()
    ctx.register_parquet("t", path)
    cols = [(i, f) for i, f in enumerate(fields) if f["type"] in ORDERED]
    if not cols:
        return
    quoted = ['"' + f["name"].replace('"', '""') + '"' for _, f in cols]
    select = ", ".join(f"min({q}) as a{i}, max({q}) as b{i}" for i, q in enumerate(quoted))
    for name, table in (("duckdb", con.sql(f"select {select} from read_parquet('{path}', hive_partitioning=false)").to_arrow_table()),
                        ("datafusion", ctx.sql(f"select {select} from t").to_arrow_table())):
        yield name, {i: tuple(engine_values(table.column(2 * k + j), f["type"])[0] for j in (0, 1)) for k, (i, f) in enumerate(cols)}


FLAT = ("int", "long", "string")


def mixed(path):
    """the string columns that are dictionary-coded in some row groups only: fastparquet loses their other strings, those of raw files too"""
    meta = pa.parquet.read_metadata(path)
    coded = {}
    for g in range(meta.num_row_groups):
        for i in range(meta.num_columns):
            c = meta.row_group(g).column(i)
            if c.physical_type == "BYTE_ARRAY":
                coded.setdefault(c.path_in_schema, set()).add(c.has_dictionary_page)
    return {name for name, ways in coded.items() if len(ways) > 1}


def fastparquet_check(path, schema, lines):
    """the flat columns of types that pandas keeps without loss"""
    skipped = mixed(path)
    flat = {"fields": [f for f in schema["fields"] if f["type"] in FLAT and f["name"] not in skipped]}
    names = [f["name"] for f in flat["fields"]]
    if not names:
        return None
    frame = fastparquet.ParquetFile(path).to_pandas(columns=names)
    types = pa.schema([pa.parquet.read_schema(path).field(n) for n in names])
    return difference(engine_rows(pa.Table.from_pandas(frame, schema=types, preserve_index=False), flat), expected_rows(lines, flat))


# Tables whose raw files fastparquet itself reads wrongly or not at all: V2 pages and codecs it lacks.
FASTPARQUET_LIMITS = ("codecs", "types_*", "v2_eq")


# Types that an engine refuses in the raw files as well.
REFUSED = {"polars": ("geometry", "geography")}


def refused(engine, schema):
    return any(t in json.dumps(schema) for t in REFUSED.get(engine, ()))


def check_snapshot(check, tag, path, schema, lines):
    want = expected_rows(lines, schema)
    for name, read in ENGINES.items():
        if refused(name, schema):
            continue
        check(f"{tag} {name}", lambda: difference(engine_rows(read(path), schema), want))
    fields = schema["fields"]
    if not fields:
        return
    rows = list(want.elements())
    nulls = [sum(r[i] is None for r in rows) for i in range(len(fields))]
    names = [f["name"] for f in fields]
    check(tag + " null counts", lambda: next((f"{n}: NULLs {got}, want {nulls}" for n, got in null_counts(path, schema) if got != nulls), None))

    def min_max():
        for name, got in extremes(path, fields):
            for i, pair in got.items():
                vals = [r[i] for r in rows if r[i] is not None]
                if pair != ((min(vals), max(vals)) if vals else (None, None)):
                    return f"{name}: min and max of {names[i]} are {pair}"
    check(tag + " min/max", min_max)
    if not any(fnmatch.fnmatch(tag.split("/")[0], g) for g in FASTPARQUET_LIMITS) and rows:
        check(tag + " fastparquet", lambda: fastparquet_check(path, schema, lines))


def main():
    a, check = arguments(), Checks()
    for s in snapshots(a):
        if "variant" not in s.types:  # the judge compares variants; engines differ in what they return for them
            check_snapshot(check, s.tag, s.path, s.schema, s.lines())
    return check.report()


if __name__ == "__main__":
    sys.exit(main())
