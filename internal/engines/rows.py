"""Rows of an engine and recorded rows, both as canonical values, so that they compare with ==.

A recorded row is a JSON object whose values are encoded by Iceberg type (see expected_value); an engine's rows come as a
pyarrow table. Canonical: integers for dates and times (days; microseconds or nanoseconds), hex for bytes, packed bits
for floats (one NaN), Decimal for decimals, tuples for structs and lists, frozensets of counted pairs for maps.
"""
import datetime, decimal, json, math, struct
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc


def float_bits(v, t):
    if math.isnan(v):
        return "NaN"
    return struct.pack("<f" if t == "float" else "<d", v)


def days(text):
    y, m, d = (int(x) for x in text.rsplit("-", 2))
    return (datetime.date(y, m, d) - datetime.date(1970, 1, 1)).days


def clock(text, per_second):
    h, m, s = text.split(":")
    whole, _, frac = s.partition(".")
    digits = len(str(per_second)) - 1
    return ((int(h) * 60 + int(m)) * 60 + int(whole)) * per_second + int(frac.ljust(digits, "0") or 0)


def instant(text, per_second):
    text = text.removesuffix("+00:00").removesuffix("Z")
    date, time = text.split("T")
    return days(date) * 86400 * per_second + clock(time, per_second)


def per_second(t):
    return 10**9 if t.endswith("_ns") else 10**6


def is_bytes(t):
    return t == "binary" or t.startswith(("fixed", "geo"))


def expected_value(v, t):
    """a recorded JSON value of Iceberg type t as a canonical value"""
    if v is None:
        return None
    if isinstance(t, dict):
        if t["type"] == "struct":
            return tuple(expected_value(v.get(f["name"]), f["type"]) for f in t["fields"])
        if t["type"] == "list":
            return tuple(expected_value(x, t["element"]) for x in v)
        return frozenset(Counter((expected_value(a, t["key"]), expected_value(b, t["value"])) for a, b in v).items())
    if t in ("float", "double"):
        return float_bits(float(v), t)
    if t.startswith("decimal"):
        return decimal.Decimal(v)
    if t == "date":
        return days(v)
    if t == "time":
        return clock(v, 10**6)
    if t.startswith("timestamp"):
        return instant(v, per_second(t))
    if t == "uuid":
        return v.replace("-", "").lower()
    if is_bytes(t):
        return v.lower()
    return v


UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def ints(array, width):
    """the integers behind a temporal array, None where NULL"""
    return array.cast(pa.int32() if width == 32 else pa.int64()).to_pylist()


def engine_values(array, t):
    """an Arrow array of Iceberg type t as a list of canonical values"""
    if isinstance(array, pa.ChunkedArray):
        return [v for c in array.chunks for v in engine_values(c, t)]
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    at = array.type
    if isinstance(t, dict):
        return nested_values(array, t)
    if t in ("float", "double"):
        return [None if v is None else float_bits(v, t) for v in array.to_pylist()]
    if t == "date":
        if pa.types.is_timestamp(at):
            per = UNITS[at.unit] * 86400
            return [None if v is None else v // per for v in ints(array, 64)]
        return ints(array, 32)
    if t == "time" or t.startswith("timestamp"):
        want = per_second(t)
        have = UNITS[at.unit]
        return [None if v is None else v * want // have for v in ints(array, 64)]
    if t == "uuid":
        return [None if v is None else v.hex() if isinstance(v, bytes) else str(v).replace("-", "").lower() for v in array.to_pylist()]
    if is_bytes(t):
        return [None if v is None else bytes(v).hex() for v in array.to_pylist()]
    return array.to_pylist()


def nested_values(array, t):
    valid = array.is_valid().to_pylist()
    if t["type"] == "struct":
        cols = [engine_values(pc.struct_field(array, [f["name"]]), f["type"]) for f in t["fields"]]
        return [tuple(c[i] for c in cols) if ok else None for i, ok in enumerate(valid)]
    offsets = array.offsets.to_pylist()
    if t["type"] == "list":
        items = engine_values(array.values, t["element"])
        return [tuple(items[offsets[i]:offsets[i + 1]]) if ok else None for i, ok in enumerate(valid)]
    if pa.types.is_map(array.type):
        keys, values = array.keys, array.items
    else:  # engines without a map type: a list of key and value structs
        keys, values = pc.struct_field(array.values, [0]), pc.struct_field(array.values, [1])
    pairs = list(zip(engine_values(keys, t["key"]), engine_values(values, t["value"])))
    return [frozenset(Counter(pairs[offsets[i]:offsets[i + 1]]).items()) if ok else None for i, ok in enumerate(valid)]


def expected_rows(lines, schema):
    return Counter(tuple(expected_value(row.get(f["name"]), f["type"]) for f in schema["fields"]) for row in map(json.loads, lines))


def engine_rows(table, schema):
    if not schema["fields"]:
        return Counter({(): table.num_rows}) if table.num_rows else Counter()
    return Counter(zip(*(engine_values(table.column(i), f["type"]) for i, f in enumerate(schema["fields"]))))


def difference(got, want):
    if got == want:
        return None
    return f"{got.total()} rows, want {want.total()}; extra {list((got - want).items())[:2]}; missing {list((want - got).items())[:2]}"[:500]
