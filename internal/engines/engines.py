#!/usr/bin/env python3
"""Read every snapshot of a folder of recorded tables through an icefs mount with several engines and compare all values.

usage: engines.py --icefs BIN --tables DIR [--only GLOB,…] [--mount-args "…"]

DIR holds warehouse/ and expected/<table>/ (index.json, <snapshot>.jsonl.gz, <snapshot>.schema.json), as testdata/ does.
Engines: pyarrow, DuckDB, Polars, DataFusion; fastparquet for flat columns of files that it reads rightly as raw files.
For each also IS NULL counts and min/max per column against the rows (answers that engines take from footers).
Prints a line a failure and 'N passed, M failed'; exits 1 on a failure or when nothing was read.
"""
import argparse, errno, fnmatch, gzip, json, os, shlex, signal, subprocess, sys, tempfile, time

import datafusion, duckdb, fastparquet, polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from rows import engine_rows, engine_values, expected_rows


def read_pyarrow(path):
    return pa.parquet.read_table(path, page_checksum_verification=True)


def read_duckdb(path):
    return duckdb.connect().sql(f"select * from read_parquet('{path}', hive_partitioning=false)").to_arrow_table()


def read_polars(path):
    return polars.read_parquet(path, hive_partitioning=False, glob=False).to_arrow()


def read_datafusion(path):
    return datafusion.SessionContext().read_parquet(path).to_arrow_table()


ENGINES = {"pyarrow": read_pyarrow, "duckdb": read_duckdb, "polars": read_polars, "datafusion": read_datafusion}


def null_counts(path, names):
    """NULLs per column as each SQL engine counts them, which may come from the footer alone"""
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


def unreadable(path):
    try:
        with open(path, "rb") as f:
            while f.read(1 << 20):
                pass
    except OSError as e:
        return e.errno in (errno.EIO, errno.EOPNOTSUPP, errno.ESTALE)
    return False


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, name, fn):
        try:
            err = fn()
        except BaseException as e:  # engines raise their panics as BaseException
            if isinstance(e, KeyboardInterrupt):
                raise
            err = f"{type(e).__name__}: {e}"[:400]
        if err:
            self.failed += 1
            print(f"FAIL {name}: {err}", flush=True)
        else:
            self.passed += 1


def difference(got, want):
    if got == want:
        return None
    return f"{got.total()} rows, want {want.total()}; extra {list((got - want).items())[:2]}; missing {list((want - got).items())[:2]}"[:500]


FLAT = ("int", "long", "string")


def fastparquet_check(path, schema, lines):
    """the flat columns of types that pandas keeps without loss"""
    flat = {"fields": [f for f in schema["fields"] if f["type"] in FLAT]}
    names = [f["name"] for f in flat["fields"]]
    if not names:
        return None
    frame = fastparquet.ParquetFile(path).to_pandas(columns=names)
    types = pa.schema([pa.parquet.read_schema(path).field(n) for n in names])
    return difference(engine_rows(pa.Table.from_pandas(frame, schema=types, preserve_index=False), flat), expected_rows(lines, flat))


# Tables whose raw files fastparquet itself reads wrongly or not at all: V2 pages and codecs it lacks.
FASTPARQUET_LIMITS = ("codecs", "types_*", "v2_eq")


def check_snapshot(check, tag, path, schema, lines):
    want = expected_rows(lines, schema)
    for name, read in ENGINES.items():
        check(f"{tag} {name}", lambda: difference(engine_rows(read(path), schema), want))
    fields = schema["fields"]
    if not fields:
        return
    rows = list(want.elements())
    nulls = [sum(r[i] is None for r in rows) for i in range(len(fields))]
    names = [f["name"] for f in fields]
    check(tag + " null counts", lambda: next((f"{n}: NULLs {got}, want {nulls}" for n, got in null_counts(path, names) if got != nulls), None))

    def min_max():
        for name, got in extremes(path, fields):
            for i, pair in got.items():
                vals = [r[i] for r in rows if r[i] is not None]
                if pair != ((min(vals), max(vals)) if vals else (None, None)):
                    return f"{name}: min and max of {names[i]} are {pair}"
    check(tag + " min/max", min_max)
    if not any(fnmatch.fnmatch(tag.split("/")[0], g) for g in FASTPARQUET_LIMITS) and rows:
        check(tag + " fastparquet", lambda: fastparquet_check(path, schema, lines))


def mount(binary, source, args):
    mnt, cache = tempfile.mkdtemp(prefix="icefs-engines-"), tempfile.mkdtemp(prefix="icefs-engines-cache-")
    p = subprocess.Popen([binary, "mount", "--cache-dir", cache, *args, source, mnt], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(400):
        if os.path.ismount(mnt):
            return p, mnt
        if p.poll() is not None:
            raise SystemExit(f"icefs exited {p.returncode}")
        time.sleep(0.05)
    p.kill()
    raise SystemExit("not mounted after 20 s")


def unmount(p, mnt):
    p.send_signal(signal.SIGTERM)
    try:
        p.wait(30)
    except subprocess.TimeoutExpired:
        p.kill()
        subprocess.run(["umount", "-l", mnt])


def selected(name, only):
    globs = only.split(",")
    return any(fnmatch.fnmatch(name, g) for g in globs if g[0] != "!") and not any(fnmatch.fnmatch(name, g[1:]) for g in globs if g[0] == "!")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--icefs", required=True)
    ap.add_argument("--tables", required=True)
    ap.add_argument("--only", default="*")
    ap.add_argument("--mount-args", default="")
    a = ap.parse_args()
    check, mounts = Checks(), {}
    try:
        for table in sorted(os.listdir(a.tables + "/expected")):
            folder = f"{a.tables}/expected/{table}"
            if not selected(table, a.only) or not os.path.exists(folder + "/index.json"):
                continue
            index = json.load(open(folder + "/index.json"))
            if index["source"].startswith("object-store/") or index.get("must_error"):
                continue
            source = os.path.join(a.tables, index["source"])
            args = shlex.split(a.mount_args) + (["--allow-path", a.tables + "/elsewhere"] if table == "data_path" else [])
            if source not in mounts:
                mounts[source] = mount(a.icefs, source, args)
            root = os.path.join(mounts[source][1], index["mount_path"])
            for s in index["snapshots"]:
                sid = s["snapshot_id"]
                path = f"{root}/snapshots/{sid}/data.parquet"
                if s.get("must_error") or not s.get("rows") or (index.get("may_error") and unreadable(path)):
                    continue
                schema = json.load(open(f"{folder}/{sid}.schema.json"))["iceberg_schema"]
                if "variant" in json.dumps(schema):
                    continue  # the judge compares variants; engines differ in what they return for them
                lines = gzip.open(f"{folder}/{s['rows']}", "rt", encoding="utf-8", errors="surrogatepass").read().split("\n")[:-1]
                check_snapshot(check, f"{table}/{sid}", path, schema, lines)
    finally:
        for p, mnt in mounts.values():
            unmount(p, mnt)
    print(f"{check.passed} passed, {check.failed} failed")
    return 1 if check.failed or not check.passed else 0


if __name__ == "__main__":
    sys.exit(main())
