"""Writes the Parquet files of this folder with pyarrow, and their values.

values.json maps a column to its rows: null, a list, or the value's bytes as
PLAIN stores them, in hexadecimal (without a byte array's length).
"""
import datetime, decimal, json, os, random, struct
import pyarrow as pa, pyarrow.parquet as pq

here = os.path.dirname(os.path.abspath(__file__))
random.seed(7)
N = 150


def some(values, nulls=0.2):
    return [None if random.random() < nulls else v for v in values]


words = ["", "a", "Ünï", "a longer string of words, over sixteen bytes", "tab\there"]
cols = {
    "i32": (pa.int32(), some([random.choice([0, -1, 7, 2**31 - 1, -2**31]) for _ in range(N)])),
    "i64": (pa.int64(), some([random.choice([random.getrandbits(63), -5, i]) for i in range(N)])),
    "seq": (pa.int64(), list(range(1000, 1000 + N))),
    "f32": (pa.float32(), some([random.choice([0.0, -0.0, 1.5, 3.25, float("inf")]) for _ in range(N)])),
    "f64": (pa.float64(), some([random.random() for _ in range(N)])),
    "flag": (pa.bool_(), some([random.random() < 0.3 for _ in range(N)])),
    "text": (pa.string(), some([random.choice(words) + ("%d" % (i // 9) if i % 4 else "") for i in range(N)])),
    "fix": (pa.binary(5), some([b"%05d" % (i // 3) for i in range(N)])),
    "dec": (pa.decimal128(20, 2), some([decimal.Decimal(random.randint(-10**18, 10**18)) / 100 for _ in range(N)])),
    "null": (pa.string(), [None] * N),
    "ints": (pa.list_(pa.int32()), some([some(range(i % 4)) for i in range(N)])),
    "texts": (pa.list_(pa.string()), some([some(words[: i % 3]) for i in range(N)])),
}


def plain(t, v):
    if v is None:
        return None
    if pa.types.is_list(t):
        return [plain(t.value_type, x) for x in v]
    if pa.types.is_decimal(t):
        return int(v.scaleb(2)).to_bytes(9, "big", signed=True).hex()
    if pa.types.is_boolean(t):
        return "%02x" % v
    if pa.types.is_string(t):
        return v.encode().hex()
    if isinstance(v, bytes):
        return v.hex()
    return struct.pack({pa.int32(): "<i", pa.int64(): "<q", pa.float32(): "<f", pa.float64(): "<d"}[t], v).hex()


def field(name, t):
    return pa.field(name, t, nullable=name != "seq")


table = pa.table({n: pa.array(v, t) for n, (t, v) in cols.items()}, schema=pa.schema([field(n, t) for n, (t, _) in cols.items()]))
with open(here + "/values.json", "w") as f:
    json.dump({n: [plain(t, v) for v in vs] for n, (t, vs) in cols.items()}, f, separators=(",", ":"))


def write(name, **options):
    pq.write_table(table, here + "/" + name + ".parquet", write_batch_size=16, data_page_size=200, row_group_size=100,
                   store_schema=False, **options)


for version in ["1.0", "2.0"]:
    v = dict(data_page_version=version)
    for codec in ["none", "snappy", "gzip", "zstd", "lz4", "brotli"]:
        write(f"{codec}-v{version[0]}", compression=codec, write_page_checksum=codec == "zstd", write_page_index=codec == "snappy", **v)
    v["use_dictionary"] = False
    delta = {"i32": "DELTA_BINARY_PACKED", "i64": "DELTA_BINARY_PACKED", "seq": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY",
             "fix": "DELTA_BYTE_ARRAY", "dec": "DELTA_BYTE_ARRAY", "flag": "RLE", "ints.list.element": "DELTA_BINARY_PACKED",
             "texts.list.element": "DELTA_LENGTH_BYTE_ARRAY", "null": "DELTA_BYTE_ARRAY"}
    write(f"delta-v{version[0]}", column_encoding=delta, compression="zstd", **v)
    split = {c: "BYTE_STREAM_SPLIT" for c in ["i32", "i64", "seq", "f32", "f64", "fix", "dec", "ints.list.element"]}
    write(f"split-v{version[0]}", column_encoding={**split, "text": "DELTA_LENGTH_BYTE_ARRAY"}, compression="none", **v)
    write(f"plain-v{version[0]}", compression="snappy", **v)

# Dictionary pages that fall back to PLAIN: 2,000 distinct strings of 21 bytes.
fallback = pa.table({"s": pa.array([None if i % 7 == 0 else "value %015d" % i for i in range(2000)])})
for version in ["1.0", "2.0"]:
    pq.write_table(fallback, f"{here}/fallback-v{version[0]}.parquet", data_page_version=version, dictionary_pagesize_limit=128,
                   write_batch_size=64, data_page_size=512, compression="zstd", store_schema=False)

# INT96 timestamps.
stamps = [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), None, datetime.datetime(2026, 11, 30)]
pq.write_table(pa.table({"t": pa.array(stamps, pa.timestamp("ns"))}), here + "/int96.parquet", use_deprecated_int96_timestamps=True,
               compression="none", store_schema=False)
# LZ4_RAW pages that compress little: random integers among equal ones.
little = pa.table({"n": pa.array([random.getrandbits(40) if i % 2 else i for i in range(3000)], pa.int64())})
pq.write_table(little, here + "/lz4-little.parquet", compression="lz4", use_dictionary=False, store_schema=False)
