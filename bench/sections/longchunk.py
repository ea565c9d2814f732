"""One column chunk of 2.6 GB under --memory 256MiB, with and without a page index, and pages of 400 MB.

With a page index the server's peak RSS stays below 450 MiB; without one, and where a page alone is larger than the budget,
within one chunk's size, or four times a page's, beyond that.
"""

import pathlib
import shutil
import subprocess

from harness import JOB, Table, load, parquet

ORDER = 70
WIDTH = 2_100  # bytes of a value
TABLES = (  # name, rows, bytes of a page, page index, MiB that the peak may reach
    ("long-indexed", 1_250_000, 1 << 20, True, 450),
    ("long-plain", 1_250_000, 1 << 20, False, 450 + 1_250_000 * WIDTH // 2**20),
    ("long-pages", 400_000, 400 << 20, True, 450 + 4 * 400),
)
SQL = "SELECT count(*), sum(n), sum(strlen(s)), sum(hash(s)) FROM {from}"


def write(file, rows, page_bytes, index):
    import numpy
    import pyarrow
    import pyarrow.parquet

    data = numpy.random.default_rng(1).integers(64, 123, rows * WIDTH, dtype=numpy.uint8)
    offsets = numpy.arange(rows + 1, dtype=numpy.int64) * WIDTH
    text = pyarrow.LargeStringArray.from_buffers(rows, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data))
    fields = [pyarrow.field(name, type, False, {"PARQUET:field_id": id}) for name, type, id in (("n", pyarrow.int64(), "1"), ("s", pyarrow.large_string(), "2"))]
    table = pyarrow.table([pyarrow.array(range(rows), pyarrow.int64()), text], pyarrow.schema(fields))
    pyarrow.parquet.write_table(table, file, row_group_size=rows, compression="none", use_dictionary=False, write_statistics=["n"], store_schema=False,
                                data_page_size=page_bytes, write_batch_size=64, max_rows_per_page=rows, write_page_index=index)


def generated(bench, name, rows, page_bytes, index):
    folder, ids = bench.data / name, bench.data / f"{name}.ids"
    if not ids.exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "data").mkdir(parents=True)
        file = folder / "data" / "part.parquet"
        write(file, rows, page_bytes, index)
        command = ("go", "run", "./bench/longchunk", "-rows", str(rows), str(folder), str(file))
        ids.write_text(subprocess.run(command, capture_output=True, text=True, check=True, cwd=JOB.parent.parent).stdout)
    return Table(folder, ids)


def run(bench):
    for name, rows, page_bytes, index, limit in TABLES:
        table = generated(bench, name, rows, page_bytes, index)
        view = table.ids["main"]
        raw = f"(SELECT * FROM read_parquet('{table.raw[0]}') WHERE n % 50 <> 7)"
        with bench.cache() as cache, bench.mount(cache, table, ("--memory", "256MiB")) as mount:
            seconds, answer = bench.run("duckdb", 1, SQL.replace("{from}", parquet(mount.view(view))))
            tail = pathlib.Path(mount.view(view)).stat().st_size
        chunk = rows * WIDTH / 2**20
        bench.same(name, [answer, bench.run("duckdb", 1, SQL.replace("{from}", raw))[1]])
        bench.say(f"{name}: a chunk of {chunk:.0f} MiB, view of {tail / 2**20:.0f} MiB read in {seconds[0]:.1f} s, peak RSS {mount.peak:.0f} of at most {limit} MiB ({load()})")
        if mount.peak > limit:
            bench.wrong.append(f"{name}: peak RSS of {mount.peak:.0f} MiB with --memory 256MiB")
        shutil.rmtree(table.folder)
        (bench.data / f"{name}.ids").unlink()
