"""Writes the fixtures of internal/pqfile's projection tests, and the rows that
pyarrow reads from them (numbers as stored, decimals unscaled, bytes as hex,
maps as pairs). Run here with pyarrow."""
import datetime, decimal, json, math, random
import pyarrow as pa, pyarrow.parquet as pq

D = decimal.Decimal


def conv(v, t):
    if not v.is_valid:
        return None
    if pa.types.is_struct(t):
        return {f.name: conv(v[i], f.type) for i, f in enumerate(t)}
    if pa.types.is_list(t):
        return [conv(x, t.value_type) for x in v.values]
    if pa.types.is_map(t):
        return [[conv(x[0], t.key_type), conv(x[1], t.item_type)] for x in v.values]
    if pa.types.is_decimal(t):
        return int(v.as_py().scaleb(t.scale, context=decimal.Context(prec=80)))
    if pa.types.is_date(t) or pa.types.is_time(t) or pa.types.is_timestamp(t):
        return v.value
    if pa.types.is_binary(t) or pa.types.is_fixed_size_binary(t):
        return v.as_py().hex()
    return v.as_py()


def write(name, table, **kw):
    pq.write_table(table, name + ".parquet", **kw)
    back = pq.ParquetFile(name + ".parquet", coerce_int96_timestamp_unit="us").read().combine_chunks()
    with open(name + ".jsonl", "w") as f:
        for i in range(back.num_rows):
            row = {n: conv(back.column(n)[i], back.schema.field(n).type) for n in back.column_names}
            f.write(json.dumps(row, separators=(",", ":")) + "\n")


def fld(name, typ, id=None, nullable=True):
    return pa.field(name, typ, nullable, {"PARQUET:field_id": str(id)} if id else None)


rnd = random.Random(7)


def maybe(f, p=0.2):
    return None if rnd.random() < p else f()


def many(f, n=4):
    return [f() for _ in range(rnd.choice([0, 0, 1, 2, n]))]


word = lambda: rnd.choice(["", "a", "é", "long word of many letters", "x" * rnd.randrange(9)])
num = lambda: rnd.randrange(-1000, 1000)


def nested(ids):
    i = (lambda n: n) if ids else (lambda n: None)
    inner = pa.struct([fld("x", pa.int32(), i(11)), fld("tags", pa.list_(fld("element", pa.string(), i(13))), i(12))])
    schema = pa.schema([
        fld("id", pa.int64(), i(1), False),
        fld("nums", pa.list_(fld("element", pa.int32(), i(3))), i(2)),
        fld("words", pa.list_(fld("element", pa.list_(fld("element", pa.string(), i(6))), i(5))), i(4)),
        fld("st", pa.struct([fld("a", pa.int32(), i(8)), fld("s", pa.string(), i(9))]), i(7)),
        fld("m", pa.map_(fld("key", pa.string(), i(15), False), fld("value", inner, i(16))), i(10)),
        fld("ls", pa.list_(fld("element", inner if not ids else pa.struct([
            fld("x", pa.int32(), 23), fld("tags", pa.list_(fld("element", pa.string(), 25)), 24)]), i(22))), i(21)),
    ])
    st = lambda: {"x": maybe(num), "tags": maybe(lambda: many(lambda: maybe(word)))}
    rows = [{
        "id": n,
        "nums": maybe(lambda: many(lambda: maybe(num), 30)),
        "words": maybe(lambda: many(lambda: maybe(lambda: many(lambda: maybe(word))))),
        "st": maybe(lambda: {"a": maybe(num), "s": maybe(word)}),
        "m": maybe(lambda: [(f"k{k}", maybe(st)) for k in range(rnd.choice([0, 1, 3]))]),
        "ls": maybe(lambda: many(lambda: maybe(st))),
    } for n in range(300)]
    return pa.Table.from_pylist(rows, schema)


write("nested_v1", nested(True), write_page_index=True, data_page_size=1, write_batch_size=7, row_group_size=170, dictionary_pagesize_limit=200)
write("nested_v2", nested(True), data_page_size=64, write_batch_size=16, data_page_version="2.0", write_page_index=True, compression="zstd")
write("nested_noids", nested(False), compression="none", use_compliant_nested_type=False)

# Required all the way down: its footer can be rewritten as older list forms.
req = pa.Table.from_pylist(
    [{"a": [1, 2], "r": [5], "s": [{"x": 1, "y": "p"}, {"x": 2, "y": "q"}]}, {"a": None, "r": [], "s": []},
     {"a": [], "r": [6, 7], "s": None}, {"a": [3], "r": [8], "s": [{"x": 3, "y": "r"}]}],
    pa.schema([fld("a", pa.list_(fld("element", pa.int32(), 2, False)), 1),
               fld("r", pa.list_(fld("element", pa.int32(), 4, False)), 3, False),
               fld("s", pa.list_(fld("element", pa.struct([fld("x", pa.int32(), 7, False), fld("y", pa.string(), 8, False)]), 6, False)), 5)]))
write("lists", req)

ts = ["3332-12-14T11:33:10.965", "0001-01-01T00:00:00", "1969-12-31T23:59:59.999999", None, "9999-12-31T23:59:59.999999"] * 4
us = lambda: pa.array([None if t is None else datetime.datetime.fromisoformat(t) for t in ts], pa.timestamp("us"))
write("int96", pa.table([us()], pa.schema([fld("ts", pa.timestamp("us"), 1)])), use_deprecated_int96_timestamps=True)
write("int96_plain", pa.table([us()], pa.schema([fld("ts", pa.timestamp("us"), 1)])), use_deprecated_int96_timestamps=True, use_dictionary=False)

days = [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), None, datetime.date(9999, 12, 31)]
near = [-1, 0, 1_700_000_000_123_456_789, None]
scalars = pa.schema([
    fld("i8", pa.int8(), 1), fld("i16", pa.int16(), 2), fld("i32", pa.int32(), 3), fld("i64", pa.int64(), 4),
    fld("u8", pa.uint8(), 5), fld("u16", pa.uint16(), 6), fld("u32", pa.uint32(), 7), fld("u64", pa.uint64(), 8),
    fld("f", pa.float32(), 9), fld("d", pa.float64(), 10), fld("date", pa.date32(), 11),
    fld("tms", pa.time32("ms"), 12), fld("tns", pa.time64("ns"), 13),
    fld("ms", pa.timestamp("ms"), 14), fld("us", pa.timestamp("us", "UTC"), 15), fld("ns", pa.timestamp("ns"), 16),
    fld("s", pa.string(), 17), fld("b", pa.binary(), 18), fld("fx", pa.binary(16), 19), fld("req", pa.int32(), 20, False),
    fld("bool", pa.bool_(), 21), fld("null", pa.null(), 22)])
cols = [
    [-128, 127, None, 0], [-32768, 32767, None, 0], [-2**31, 2**31 - 1, None, 0], [-2**63, 2**63 - 1, None, 0],
    [0, 255, None, 1], [0, 65535, None, 1], [0, 2**32 - 1, None, 1], [0, 2**64 - 1, None, 1],
    [1.5, -0.25, None, 3.0], [0.1, -1e300, None, 2.0], days,
    [datetime.time(0, 0, 0, 1000), datetime.time(23, 59, 59, 999000), None, datetime.time(12)],
    pa.array([1, 86399_999_999_999, None, 1999], pa.time64("ns")),
    pa.array([-1, 1_700_000_000_123, None, 0], pa.timestamp("ms")),
    pa.array([-1, 1_700_000_000_123_456, None, 0], pa.timestamp("us", "UTC")), pa.array(near, pa.timestamp("ns")),
    ["é", "", None, "z"], [b"\x00\xff", b"", None, b"z"], [b"0123456789abcdef", b"\xff" * 16, None, b"\x00" * 16], [1, 2, 3, 4],
    [True, False, None, True], pa.nulls(4)]
write("scalars", pa.table([pa.array(c, f.type) if isinstance(c, list) else c for c, f in zip(cols, scalars)], scalars), version="2.6")

dec = lambda p, s, vals: pa.array([None if v is None else D(v).scaleb(-s, context=decimal.Context(prec=60)) for v in vals], pa.decimal128(p, s))
d = pa.schema([fld("d9", pa.decimal128(9, 2), 1), fld("d18", pa.decimal128(18, 2), 2), fld("d38", pa.decimal128(38, 2), 3)])
arrays = [dec(9, 2, [-999999999, 999999999, None, 0, -1]), dec(18, 2, [-10**18 + 1, 10**18 - 1, None, 0, -1]), dec(38, 2, [-10**38 + 1, 10**38 - 1, None, 0, -1])]
write("decimals_int", pa.table(arrays, d), store_decimal_as_integer=True)
write("decimals_flba", pa.table(arrays, d), store_decimal_as_integer=False)

# A dictionary that overflows: coded pages first, PLAIN after, in one chunk.
n = 4000
mixed = pa.table([pa.array([f"value {i % 50 if i < 1500 else i}" if i % 11 else None for i in range(n)]), pa.array([i * 7 for i in range(n)], pa.int32())],
                 pa.schema([fld("s", pa.string(), 1), fld("n", pa.int32(), 2)]))
write("mixed", mixed, dictionary_pagesize_limit=3000, data_page_size=1000, write_batch_size=100, write_page_index=True, row_group_size=3000, compression="gzip")
