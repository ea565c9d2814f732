#!/usr/bin/env python3
"""Read every snapshot of a folder of recorded tables as CSV and JSON Lines through an icefs mount and compare all values.

usage: text.py --icefs BIN --tables DIR [--only GLOB,…] [--mount-args "…"]

Readers of data.csv: DuckDB (quote and types given), pyarrow.csv, Python's csv, pandas; of data.jsonl: Python's json, DuckDB.
Values compare as the texts that the contract gives, decimals and times too; floats by their bits; nested columns as JSON.
What a reader cannot do by itself is told beside it here, and in docs/performance.md. Prints a line a failure and 'N passed, M failed';
exits 1 on a failure or when nothing was read.
"""
import csv, decimal, json, math, struct, sys
from collections import Counter

import duckdb, pandas
import pyarrow as pa
import pyarrow.csv

from rows import difference, is_bytes
from tables import Checks, arguments, snapshots

csv.field_size_limit(1 << 30)


def trimmed(text):
    """a time without trailing zeros of its fraction"""
    return text.rstrip("0").removesuffix(".") if "." in text else text


def scalar(text, t):
    """the text of a field as a value: floats by their bits, all else as it is"""
    if t not in ("float", "double"):
        return text
    v = float(text.replace("Infinity", "inf"))
    return "NaN" if math.isnan(v) else struct.pack("<f" if t == "float" else "<d", v)


def recorded(v, t):
    """a recorded value of Iceberg type t: the text that its field has, as a value"""
    if v is None:
        return None
    if isinstance(t, dict):
        if t["type"] == "struct":
            return tuple(recorded(v.get(f["name"]), f["type"]) for f in t["fields"])
        if t["type"] == "list":
            return tuple(recorded(x, t["element"]) for x in v)
        return frozenset(Counter((recorded(a, t["key"]), recorded(b, t["value"])) for a, b in v).items())
    if t == "variant":
        return loose(v["variant"])
    if t == "boolean":
        return "true" if v else "false"
    if t.startswith("timestamp"):
        return trimmed(v.removesuffix("+00:00").replace("T", " ", 1)) + ("Z" if "tz" in t else "")
    if t == "time":
        return trimmed(v)
    if t == "uuid" or is_bytes(t):
        return v.lower()
    return scalar(str(v), t)


def loose(v):
    """a value inside a variant, without the types that JSON does not tell"""
    if isinstance(v, dict):
        return tuple(sorted((k, loose(x)) for k, x in v.items()))
    if isinstance(v, list):
        return tuple(map(loose, v))
    if v is None or isinstance(v, bool):
        return str(v)
    if isinstance(v, str):
        try:
            v = decimal.Decimal(v)
        except decimal.InvalidOperation:
            return v.replace("T", " ").replace("+00:00", "Z")
    return float(v)


def parsed(v, t):
    """a value of JSON, whose numbers are texts, of Iceberg type t"""
    if v is None:
        return None
    if t == "variant":
        return loose(v)
    if isinstance(t, dict):
        if t["type"] == "struct":
            return tuple(parsed(v[f["name"]], f["type"]) for f in t["fields"])
        if t["type"] == "list":
            return tuple(parsed(x, t["element"]) for x in v)
        pairs = v.items() if isinstance(v, dict) else ((e["key"], e["value"]) for e in v)
        return frozenset(Counter((parsed(a, t["key"]), parsed(b, t["value"])) for a, b in pairs).items())
    if isinstance(v, bool):
        return "true" if v else "false"
    return scalar(v, t)


def loads(text):
    return json.loads(text, parse_int=str, parse_float=str, parse_constant=str)


def field(text, t):
    """a field of CSV of Iceberg type t"""
    if text is None:
        return None
    if isinstance(t, bytes):
        text = text.decode("utf-8", "surrogateescape")
    if isinstance(t, dict) or t == "variant":
        return parsed(loads(text), t)
    return scalar(text, t)


def duckdb_type(t):
    """the type that DuckDB is told to read a field as"""
    if isinstance(t, dict):
        return "VARCHAR"
    plain = {"boolean": "BOOLEAN", "int": "INTEGER", "long": "BIGINT", "date": "DATE", "timestamp": "TIMESTAMP", "timestamp_ns": "TIMESTAMP_NS"}
    return plain.get(t, t.upper().replace(" ", "") if t.startswith("decimal") else "VARCHAR")


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def identifier(name):
    return '"' + name.replace('"', '""') + '"'


def duckdb_csv(path, fields):
    columns = ", ".join(f"{quoted(f['name'])}: {quoted(duckdb_type(f['type']))}" for f in fields)
    con = duckdb.connect()
    con.execute("SET threads = 1")
    query = f"""FROM read_csv('{path}', header = true, auto_detect = false, delim = ',', quote = '"', escape = '"', nullstr = '', new_line = '\\n',
        allow_quoted_nulls = false, max_line_size = 100000000, columns = {{{columns}}})"""
    select = ", ".join(f"CAST({identifier(f['name'])} AS VARCHAR)" for f in fields)
    for row in con.execute(f"SELECT {select} {query}").fetchall():
        yield [trimmed(v) if v is not None and str(f["type"]).startswith(("timestamp", "time")) and not str(f["type"]).startswith("timestamptz") else v for v, f in zip(row, fields)]


def pyarrow_csv(path, fields):
    names = [str(i) for i in range(len(fields))]
    table = pa.csv.read_csv(
        path, pa.csv.ReadOptions(column_names=names, skip_rows=0, block_size=64 << 20),
        pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False))
    rows = list(zip(*(table.column(i).to_pylist() for i in range(len(fields)))))
    assert list(rows[0]) == [f["name"] for f in fields], f"header {rows[0]}"
    return rows[1:]


def python_csv(path, fields):
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as f:
        rows = csv.reader(f, quoting=getattr(csv, "QUOTE_NOTNULL", csv.QUOTE_MINIMAL), strict=True)
        header = next(rows)
        assert header == [f["name"] for f in fields], f"header {header}"
        yield from rows


def pandas_csv(path, fields):
    frame = pandas.read_csv(path, dtype=str, keep_default_na=False, na_filter=False, skip_blank_lines=False, header=None, lineterminator="\n", encoding_errors="surrogateescape")
    rows = frame.values.tolist()
    assert rows[0] == [f["name"] for f in fields], f"header {rows[0]}"
    return rows[1:]


def python_json(path, fields):
    with open(path, encoding="utf-8", newline="\n") as f:
        for line in f:
            row = loads(line)
            assert list(row) == [f["name"] for f in fields], f"keys {list(row)}"
            yield list(row.values())


def duckdb_json(path, fields):
    columns = ", ".join(f"{quoted(f['name'])}: 'JSON'" for f in fields)
    query = f"SELECT * FROM read_json('{path}', format = 'newline_delimited', maximum_object_size = 100000000, columns = {{{columns}}})"
    for row in duckdb.connect().execute(query).fetchall():
        yield [None if v is None else loads(v) for v in row]


def doubles(v, t):
    """a value as DuckDB reads it from JSON: numbers that have a point as doubles, -0 as 0"""
    if v is None:
        return None
    if isinstance(t, dict):
        if t["type"] == "struct":
            return tuple(doubles(x, f["type"]) for x, f in zip(v, t["fields"]))
        if t["type"] == "list":
            return tuple(doubles(x, t["element"]) for x in v)
        return frozenset(Counter({(doubles(a, t["key"]), doubles(b, t["value"])): n for (a, b), n in v}).items())
    if t in ("float", "double"):
        return b"\0" * len(v) if v != "NaN" and v == b"\0" * (len(v) - 1) + b"\x80" else v
    return float(v) if t.startswith("decimal") else v


# Readers that return NULL and the empty string alike.
NULL_IS_EMPTY = {"pandas"} | (set() if hasattr(csv, "QUOTE_NOTNULL") else {"python csv"})


def rows_of(read, path, fields, convert, merge):
    def value(v, t):
        v = None if merge and v == "" else v
        return convert(v, t)
    return Counter(tuple(value(v, f["type"]) for v, f in zip(row, fields, strict=True)) for row in read(path, fields))


def without_empty(rows):
    return Counter(tuple(None if v == "" else v for v in row) for row in rows.elements())


def check_snapshot(check, s):
    fields = s.schema["fields"]
    if not fields:
        return
    lines = list(map(json.loads, s.lines()))
    want = Counter(tuple(recorded(row.get(f["name"]), f["type"]) for f in fields) for row in lines)
    # A variant null looks like NULL.
    want = Counter(tuple(None if v == "None" and f["type"] == "variant" else v for v, f in zip(row, fields)) for row in want.elements())
    base = s.path.removesuffix(".parquet")
    for name, read in {"duckdb": duckdb_csv, "pyarrow": pyarrow_csv, "python csv": python_csv, "pandas": pandas_csv}.items():
        merge = name in NULL_IS_EMPTY or len(fields) == 1
        check(f"{s.tag} csv {name}", lambda: difference(rows_of(read, base + ".csv", fields, field, merge), without_empty(want) if merge else want))
    check(s.tag + " jsonl python json", lambda: difference(rows_of(python_json, base + ".jsonl", fields, parsed, False), want))
    want = Counter(tuple(doubles(v, f["type"]) for v, f in zip(row, fields)) for row in want.elements())
    check(s.tag + " jsonl duckdb", lambda: difference(rows_of(duckdb_json, base + ".jsonl", fields, lambda v, t: doubles(parsed(v, t), t), False), want))


def main():
    a, check = arguments(), Checks()
    for s in snapshots(a):
        check_snapshot(check, s)
    return check.report()


if __name__ == "__main__":
    sys.exit(main())
