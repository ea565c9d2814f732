"""Four readers at once under --memory 256MiB: the same answers as with 1 GiB, and the server's peak RSS."""

import subprocess
import sys
import time

ORDER = 60
DUCKDB = "import duckdb; c = duckdb.connect(config={'threads': 2}); print(c.sql(\"SELECT sum(hash(COLUMNS(*))) FROM '%s'\").fetchall())"
PYARROW = "import pyarrow.parquet as pq; print(sum(b.num_rows for b in pq.ParquetFile('%s').iter_batches()))"
LIMIT = 450  # MiB


def run(bench):
    snapshot = bench.table.ids["random"]
    answers = {}
    for memory in ("1GiB", "256MiB"):
        with bench.cache() as cache, bench.mount(cache, flags=("--memory", memory)) as mount:
            start = time.perf_counter()
            readers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for command in (
                [sys.executable, "-c", DUCKDB % mount.view(snapshot)],
                [sys.executable, "-c", PYARROW % mount.view(snapshot)],
                ["sha256sum", mount.view(snapshot, "data.csv")],
                ["sha256sum", mount.view(snapshot, "data.jsonl")],
            )]
            answers[memory] = [r.communicate()[0].split("  ")[0].strip() for r in readers]
            seconds = time.perf_counter() - start
        bench.say(f"--memory {memory}: {seconds:.0f} s, peak RSS {mount.peak:.0f} MiB")
        if memory == "256MiB" and mount.peak > LIMIT:
            bench.wrong.append(f"peak RSS of {mount.peak:.0f} MiB with --memory {memory}")
    if answers["1GiB"] != answers["256MiB"] or not all(answers["1GiB"]):
        bench.wrong.append(f"four readers: {answers}")
