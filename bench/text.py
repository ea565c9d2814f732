"""Times the text views against DuckDB's COPY of the same rows from the warm Parquet view to /dev/null. `make bench-text`
runs it; docs/performance.md tells what it gave.

Every round takes all timings in turns, COPY among them, and a ratio is the median of the rounds' ratios, so that a machine
that gets slower or faster meanwhile does so for both. A line that misses its bound ends with MISSED.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

COPY = """
import duckdb, sys, time
db = duckdb.connect(config={"threads": int(sys.argv[3])})
db.execute("SET enable_progress_bar = false")
query = f"COPY (SELECT * FROM read_parquet('{sys.argv[1]}', hive_partitioning = false)) TO '/dev/null' (FORMAT {sys.argv[2]})"
start = time.perf_counter()
db.execute(query)
print(time.perf_counter() - start)
"""


class Mount:
    """A mount of a table in a process of its own."""

    def __init__(self, args, table, cache, *flags):
        self.point = tempfile.mkdtemp(prefix="icefs-bench-")
        command = [args.icefs, "mount", "--cache-dir", cache, *flags, str(table), self.point]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        while not pathlib.Path(self.point).is_mount():
            if self.process.poll() is not None:
                raise SystemExit("icefs mount failed")
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        pathlib.Path(self.point).rmdir()

    def view(self, snapshot, name):
        return f"{self.point}/snapshots/{snapshot}/{name}"

    def counters(self):
        return json.loads(pathlib.Path(self.point, ".icefs/status.json").read_text())["counters"]

    def peak(self):
        """The largest resident size so far, in MiB."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
        raise SystemExit("no VmHWM")


@contextlib.contextmanager
def folder():
    path = tempfile.mkdtemp(prefix="icefs-bench-cache-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def seconds(command, shell=False):
    """How long a command takes; its output is dropped, by a pipe where a program would see that it goes to /dev/null."""
    start = time.perf_counter()
    subprocess.run(command, shell=shell, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


class Bench:
    def __init__(self, args):
        self.args = args
        self.ratios = {}
        self.missed = []

    def copy(self, view, kind):
        done = subprocess.run([sys.executable, "-c", COPY, view, kind, str(self.args.threads)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        return float(done.stdout)

    def note(self, name, took, base):
        self.ratios.setdefault(name, []).append((took, took / base))

    def report(self, name, bound, unit="COPY"):
        rounds = self.ratios[name]
        ratio = statistics.median(r for _, r in rounds)
        mark = "" if ratio <= bound else "  MISSED"
        self.say(f"{name:44}{statistics.median(t for t, _ in rounds):9.2f} s{ratio:8.3f} of {unit}, bound {bound}{mark}")
        if mark:
            self.missed.append(name)

    def check(self, name, text, good):
        self.say(f"{name:44}{text}{'' if good else '  MISSED'}")
        if not good:
            self.missed.append(name)

    def say(self, line):
        print(line, flush=True)

    def round(self, table, snapshot):
        """One round of all timings on the table of one snapshot."""
        with folder() as cache:
            first_line = f"{self.args.icefs} cat --cache-dir {cache} {table} snapshots/{snapshot}/data.csv | head -1"
            head = seconds(first_line, shell=True)
        with folder() as cache, Mount(self.args, table, cache) as mount:
            parquet, csv, jsonl = (mount.view(snapshot, "data." + form) for form in ("parquet", "csv", "jsonl"))
            self.copy(parquet, "CSV, HEADER")  # warms the view
            copy = self.copy(parquet, "CSV, HEADER")
            measure = seconds(["stat", csv])
            cat = seconds(["cat", csv])
            self.note("icefs cat | head -1, empty cache", head, copy)
            self.note("CSV: measure from cold", measure, copy)
            self.note("CSV: measure and cat", measure + cat, copy)
            self.note("CSV: cat once measured", cat, copy)
            size = os.stat(csv).st_size
            for name, command in {
                "tail -c 1000": ["tail", "-c", "1000", csv],
                "tail -n 5": ["tail", "-n", "5", csv],
                "dd near the end": ["dd", f"if={csv}", "bs=1M", f"skip={size // (1 << 20) - 2}", "count=1", "status=none"],
            }.items():
                self.note(name, seconds(command), copy)
            copied = self.copy(parquet, "JSON")
            seconds(["stat", jsonl])
            self.note("JSONL: cat once measured", seconds(["cat", jsonl]), copied)
            self.searches(csv, cat)
        return copy

    def searches(self, csv, cat):
        with tempfile.NamedTemporaryFile(prefix="icefs-bench-", suffix=".csv") as local:
            shutil.copyfile(csv, local.name)
            for tool in ("grep", "rg"):
                if not shutil.which(tool):
                    continue
                command = [tool, "-c", "furiously"]
                self.note(f"{tool} -c", seconds([*command, csv]), max(cat, seconds([*command, local.name])))

    def history(self, table, last):
        """ls -lR of a long history against the measuring of its last snapshot alone."""
        flags = ("--views", "csv")
        for _ in range(self.args.rounds):
            with folder() as cache, Mount(self.args, table, cache, *flags) as mount:
                alone = seconds(["stat", mount.view(last, "data.csv")])
            with folder() as cache:
                with Mount(self.args, table, cache, *flags) as mount:
                    self.note("ls -lR of all snapshots", seconds(["ls", "-lR", mount.point]), alone)
                with Mount(self.args, table, cache, *flags) as mount:
                    again = seconds(["ls", "-lR", mount.point])
                    pages = mount.counters()["data_pages_decoded_total"]
                    sizes = [(p, p.stat().st_size) for p in pathlib.Path(mount.point, "snapshots").glob("*/data.csv")]
                    wrong = [p for p, size in sizes[:: max(1, len(sizes) // 10)] if len(p.read_bytes()) != size]
        self.report("ls -lR of all snapshots", 2, "measuring the last")
        self.check("  again after a remount", f"{again:9.2f} s, {pages} data pages read", pages == 0)
        self.check("  sizes", f"{len(sizes)} snapshots, {len(wrong)} of the sample wrong", not wrong)

    def growing(self, table, ids):
        """Snapshots with more deletes each: only the first costs decoding."""
        with folder() as cache, Mount(self.args, table, cache) as mount:
            pages = []
            for snapshot in ids:
                os.stat(mount.view(snapshot, "data.csv"))
                pages.append(mount.counters()["data_pages_decoded_total"])
        later = pages[-1] - pages[0]
        self.check("three snapshots with growing DVs", f"   {pages[0]} data pages read for the first, {later} for the others", later == 0)

    def large(self, table, snapshot):
        """The resident size while two readers read one very long file."""
        budget = 512
        with folder() as cache, Mount(self.args, table, cache, "--memory", f"{budget}MiB", "--views", "csv") as mount:
            csv = mount.view(snapshot, "data.csv")
            size = os.stat(csv).st_size
            start = time.perf_counter()
            readers = [subprocess.Popen(["dd", f"if={csv}", "of=/dev/null", "bs=1M", f"skip={skip}", "status=none"]) for skip in (0, size >> 21)]
            if any(r.wait() for r in readers):
                raise SystemExit("dd failed")
            took, peak = time.perf_counter() - start, mount.peak()
        self.check("one long CSV, two readers", f"   {size / 1e9:.1f} GB in {took:.0f} s, at most {peak} MiB of {budget} MiB", size > 8e9 and peak <= budget)


def main():
    parser = argparse.ArgumentParser(description="Time the text views against DuckDB's COPY.")
    parser.add_argument("--icefs", default="./icefs")
    parser.add_argument("--table", help="what bench/lineitem wrote")
    parser.add_argument("--ids", help="what it printed")
    parser.add_argument("--history", help="what bench/lineitem -history wrote, and .ids beside it")
    parser.add_argument("--links", help="what bench/lineitem -links wrote, and .ids beside it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.icefs = str(pathlib.Path(args.icefs).resolve())
    ids = lambda path: dict(line.split() for line in pathlib.Path(path).read_text().splitlines())
    bench = Bench(args)
    bench.say(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors, {args.rounds} rounds")
    if args.table:
        snapshots = ids(args.ids)
        took = [bench.round(args.table, snapshots["random"]) for _ in range(args.rounds)]
        bench.say(f"{'COPY to CSV':44}{statistics.median(took):9.2f} s")
        for name, bound in {
            "CSV: measure from cold": 0.35, "CSV: measure and cat": 1, "CSV: cat once measured": 0.6, "JSONL: cat once measured": 0.8,
            "icefs cat | head -1, empty cache": 0.05, "tail -c 1000": 0.05, "tail -n 5": 0.05, "dd near the end": 0.05,
        }.items():
            bench.report(name, bound)
        for tool in ("grep -c", "rg -c"):
            if tool in bench.ratios:
                bench.report(tool, 1.2, "the slower of cat and grep of a copy")
        bench.growing(args.table, [snapshots[name] for name in ("random-1", "random-6.1", "random-10")])
    if args.history:
        bench.history(args.history, ids(args.history + ".ids")["last"])
    if args.links:
        bench.large(args.links, ids(args.links + ".ids")["copies"])
    bench.say(f"load {os.getloadavg()[0]:.1f}")
    if bench.missed:
        raise SystemExit("missed: " + ", ".join(bench.missed))


if __name__ == "__main__":
    main()
