"""What the sections of the benchmark share: tables, mounts, jobs, and how figures are printed.

Every timing is taken in a process of its own, and the ways of reading take turns, so that a machine that gets slower or
faster meanwhile does so for all of them. Printed are medians in milliseconds and ratios of medians.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

JOB = pathlib.Path(__file__).with_name("job.py")

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


def median_ms(seconds):
    return 1000 * statistics.median(seconds)


class Table:
    """An Iceberg table in a folder, all of whose data files are live, and its snapshots by branch."""

    def __init__(self, folder, ids):
        self.folder = pathlib.Path(folder).resolve()
        self.ids = dict(line.split() for line in pathlib.Path(ids).read_text().splitlines())
        self.raw = sorted(str(p) for p in self.folder.glob("data/*.parquet") if "delete" not in p.name)
        self.metadata = max(self.folder.glob("metadata/*.metadata.json"), key=lambda p: int(re.match(r"v?(\d+)", p.name).group(1)))

    def peer(self, snapshot):
        """DuckDB's own reading of a snapshot."""
        return f"iceberg_scan('{self.metadata}', snapshot_from_id = {snapshot}::UBIGINT)"

    def raw_files(self):
        return f"read_parquet({self.raw})"


def parquet(path):
    return f"read_parquet('{path}', hive_partitioning = false)"


class Mount:
    """A mounted table. peak is the server's peak resident set in MiB, once it has ended."""

    def __init__(self, point, process):
        self.point, self.process, self.peak = pathlib.Path(point), process, 0.0

    def view(self, snapshot, name="data.parquet"):
        return str(self.point / "snapshots" / str(snapshot) / name)

    def counters(self):
        return json.loads((self.point / ".icefs" / "status.json").read_text())["counters"]

    def resident(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", text).group(1)) / 1024

    def cpu(self):
        """Seconds of processor time the server has taken."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bench:
    """How tables are read: args has icefs, rounds, threads and peer_limit; table is the lineitem table."""

    def __init__(self, args):
        self.args = args
        self.icefs = str(pathlib.Path(args.icefs).resolve())
        self.data = pathlib.Path(args.data).resolve()
        self.table = Table(args.table, args.ids)
        self.wrong = []  # what did not give the same answer everywhere

    def say(self, *words):
        print(*words, flush=True)

    def run(self, engine, runs, query="", paths=(), columns=(), extensions=False, limit=None):
        """Runs a job; returns its seconds and its answer, or (None, None) after limit seconds."""
        job = {"engine": engine, "runs": runs, "query": query, "paths": list(paths), "columns": list(columns),
               "extensions": extensions, "threads": self.args.threads}
        try:
            done = subprocess.run([sys.executable, str(JOB), json.dumps(job)], capture_output=True, text=True, check=False, timeout=limit)
        except subprocess.TimeoutExpired:
            return None, None
        if done.returncode:
            raise SystemExit(f"{engine}: {done.stderr.strip()}\n{query}")
        out = json.loads(done.stdout.splitlines()[-1])
        return out["seconds"], out["answer"]

    @contextlib.contextmanager
    def mount(self, cache, table=None, flags=()):
        """Mounts a table's folder with a cache folder and yields the Mount."""
        point = tempfile.mkdtemp(prefix="icefs-bench-")
        source = (table or self.table).folder
        process = subprocess.Popen([self.icefs, "mount", "--cache-dir", cache, *flags, str(source), point],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        mount = Mount(point, process)
        try:
            while not mount.point.is_mount():
                if process.poll() is not None:
                    raise SystemExit("icefs mount failed")
                time.sleep(0.005)
            yield mount
            mount.peak = mount.resident()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            mount.point.rmdir()

    @contextlib.contextmanager
    def cache(self):
        folder = tempfile.mkdtemp(prefix="icefs-bench-cache-")
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def fresh(self, sql, snapshot, runs=1):
        """Runs a query on a fresh mount with an empty cache folder; returns the seconds of its runs, and the answer."""
        with self.cache() as cache, self.mount(cache) as mount:
            return self.run("duckdb", runs, sql.replace("{from}", parquet(mount.view(snapshot))))

    def same(self, what, answers):
        """Notes answers that should be one."""
        answers = {a for a in answers if a is not None}
        if len(answers) > 1:
            self.wrong.append(f"{what}: {sorted(answers)}")

    def generated(self, name, command):
        """A table below the data folder, made by a program that prints its ids unless it is there already."""
        folder, ids = self.data / name, self.data / f"{name}.ids"
        if not ids.exists():
            shutil.rmtree(folder, ignore_errors=True)
            self.data.mkdir(parents=True, exist_ok=True)
            out = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=True, cwd=JOB.parent.parent).stdout
            ids.write_text(out)
        return Table(folder, ids)


def load():
    return f"load {os.getloadavg()[0]:.1f}"
