"""Times queries over icefs against the same queries over the raw data files, from which nothing is deleted, and over
DuckDB's iceberg_scan, which applies the deletes itself. `make bench` runs it; docs/performance.md tells what it gave.

Every timing is taken in a process of its own, and the ways of reading take turns, so that a machine that gets slower or
faster meanwhile does so for all of them. Printed are medians in milliseconds and ratios of medians:

  fresh    first run on a fresh mount with an empty cache folder      over iceberg_scan
  cached   first run on a fresh mount with the folder so filled       over iceberg_scan
  warm     later runs on the same mount                               over iceberg_scan, and over the raw files
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

QUERIES = {
    "count": "SELECT count(*) FROM {from}",
    "q1": """SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice * (1 - l_discount)), avg(l_tax), count(*)
             FROM {from} WHERE l_shipdate <= DATE '1998-09-02' GROUP BY 1, 2 ORDER BY 1, 2""",
    "q6": """SELECT sum(l_extendedprice * l_discount) FROM {from} WHERE l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24
             AND l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'""",
    "wide": """SELECT sum(l_orderkey), sum(l_partkey), sum(l_suppkey), sum(l_linenumber), count(l_comment), max(l_comment),
               max(l_shipmode), max(l_receiptts) FROM {from}""",
    "range": "SELECT sum(l_partkey), count(l_comment) FROM {from} WHERE l_orderkey BETWEEN 500000 AND 500100",
}
LIBRARIES = ("pyarrow", "polars")  # over icefs and over the raw files, one aggregation each
COLUMNS = ["l_quantity", "l_discount"]


def worker(job):
    """Runs one job in this process: prints the seconds of its runs and the answer."""
    paths, runs, threads = job["paths"], job["runs"], job["threads"]
    if job["engine"] == "duckdb":
        import duckdb

        db = duckdb.connect(config={"threads": threads})
        db.execute("SET enable_progress_bar = false")
        if job["extensions"]:
            import duckdb_extensions

            for name in ("avro", "iceberg"):
                duckdb_extensions.import_extension(name)
                db.execute(f"LOAD {name}")
        run = lambda: db.execute(job["query"]).fetchall()
    elif job["engine"] == "pyarrow":
        import pyarrow
        import pyarrow.compute
        import pyarrow.dataset

        pyarrow.set_cpu_count(threads)

        def run():
            table = pyarrow.dataset.dataset(paths, format="parquet").to_table(columns=COLUMNS)
            return [str(pyarrow.compute.sum(table[name])) for name in COLUMNS]
    else:
        import polars

        run = lambda: polars.scan_parquet(paths, hive_partitioning=False).select(polars.col(COLUMNS).sum()).collect().rows()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        answer = run()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds, "answer": str(answer)}))


class Bench:
    """One table, and how it is read."""

    def __init__(self, args):
        self.args = args
        self.table = pathlib.Path(args.table).resolve()
        self.raw = sorted(str(p) for p in self.table.glob("data/*.parquet") if "delete" not in p.name)
        self.metadata = max(self.table.glob("metadata/*.metadata.json"), key=lambda p: int(p.name.split("-")[0].lstrip("v").split(".")[0]))
        self.wrong = []

    def run(self, engine, runs, query="", paths=(), extensions=False):
        job = {"engine": engine, "runs": runs, "query": query, "paths": list(paths), "extensions": extensions, "threads": self.args.threads}
        done = subprocess.run([sys.executable, __file__, "--job", json.dumps(job)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{engine}: {done.stderr.strip()}\n{query}")
        out = json.loads(done.stdout.splitlines()[-1])
        return out["seconds"], out["answer"]

    @contextlib.contextmanager
    def mount(self, cache):
        """Mounts the table and yields the mount point."""
        point = tempfile.mkdtemp(prefix="icefs-bench-")
        process = subprocess.Popen([self.args.icefs, "mount", "--cache-dir", cache, str(self.table), point], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            while not pathlib.Path(point).is_mount():
                if process.poll() is not None:
                    raise SystemExit("icefs mount failed")
                time.sleep(0.01)
            self.server = process.pid
            yield point
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            pathlib.Path(point).rmdir()

    @contextlib.contextmanager
    def cache(self):
        folder = tempfile.mkdtemp(prefix="icefs-bench-cache-")
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def view(self, point, snapshot):
        return f"{point}/snapshots/{snapshot}/data.parquet"

    def query(self, name, sql, snapshot):
        """Times a query in every way, in turns, and prints its line."""
        raw_from = f"read_parquet({self.raw})"
        peer_from = f"iceberg_scan('{self.metadata}', snapshot_from_id = {snapshot}::UBIGINT)"
        took = {way: [] for way in ("raw", "peer", "fresh", "cached", "warm")}
        answers = set()
        for _ in range(self.args.rounds):
            seconds, _ = self.run("duckdb", 2, sql.replace("{from}", raw_from))
            took["raw"].append(seconds[-1])
            seconds, answer = self.run("duckdb", 2, sql.replace("{from}", peer_from), extensions=True)
            took["peer"].append(seconds[-1])
            answers.add(answer)
            with self.cache() as cache:
                for way in ("fresh", "cached"):
                    with self.mount(cache) as point:
                        view = f"read_parquet('{self.view(point, snapshot)}', hive_partitioning = false)"
                        seconds, answer = self.run("duckdb", 3 if way == "fresh" else 1, sql.replace("{from}", view))
                    took[way].append(seconds[0])
                    took["warm"] += seconds[1:]
                    answers.add(answer)
        if len(answers) > 1:
            self.wrong.append(f"{name} on snapshot {snapshot}: {sorted(answers)}")
        m = {way: 1000 * statistics.median(s) for way, s in took.items()}
        print(f"{name:6}" + "".join(f"{m[way]:9.0f}" for way in took) + "".join(f"{x:13.2f}" for x in (
            m["fresh"] / m["peer"], m["cached"] / m["peer"], m["warm"] / m["peer"], m["warm"] / m["raw"])), flush=True)
        return m

    def stat(self, snapshot, count):
        seconds = []
        for _ in range(self.args.rounds):
            with self.cache() as cache, self.mount(cache) as point:
                start = time.perf_counter()
                pathlib.Path(self.view(point, snapshot)).stat()
                seconds.append(time.perf_counter() - start)
        ms = 1000 * statistics.median(seconds)
        print(f"stat of data.parquet on a fresh mount: {ms:.0f} ms, {ms / count['peer']:.2f} of iceberg_scan's count(*)", flush=True)

    def library(self, engine, snapshot):
        raw, warm = [], []
        with self.cache() as cache, self.mount(cache) as point:
            for _ in range(self.args.rounds):
                raw.append(self.run(engine, 2, paths=self.raw)[0][-1])
                warm.append(self.run(engine, 2, paths=[self.view(point, snapshot)])[0][-1])
        raw, warm = 1000 * statistics.median(raw), 1000 * statistics.median(warm)
        print(f"{engine}, sums of two columns: raw {raw:.0f} ms, icefs warm {warm:.0f} ms, {warm / raw:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Time queries over icefs against raw files and iceberg_scan.")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--icefs", default="./icefs")
    parser.add_argument("--table", help="what bench/lineitem wrote")
    parser.add_argument("--ids", help="what it printed")
    parser.add_argument("--branches", default="random,base", help="comma-separated (default random,base)")
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if args.job:
        return worker(json.loads(args.job))
    args.icefs = str(pathlib.Path(args.icefs).resolve())
    bench = Bench(args)
    ids = dict(line.split() for line in pathlib.Path(args.ids).read_text().splitlines())
    for branch in args.branches.split(","):
        print(f"{branch}\n      " + "".join(f"{way:>9}" for way in ("raw", "peer", "fresh", "cached", "warm"))
              + "".join(f"{r:>13}" for r in ("fresh/peer", "cached/peer", "warm/peer", "warm/raw")), flush=True)
        lines = {name: bench.query(name, QUERIES[name], ids[branch]) for name in args.queries.split(",")}
        if "count" in lines:
            bench.stat(ids[branch], lines["count"])
        for engine in LIBRARIES:
            bench.library(engine, ids[branch])
    if bench.wrong:
        raise SystemExit("ANSWERS DIFFER\n" + "\n".join(bench.wrong))


if __name__ == "__main__":
    main()
