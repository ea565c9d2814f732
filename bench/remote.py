#!/usr/bin/env python3
"""Counts and times queries of a table in an S3 store over icefs, against DuckDB's iceberg_scan from the same store.

usage: remote.py --icefs BIN --front BIN --gateway BIN --table DIR --ids FILE [--branches base,random] [--rounds 3]

versitygw serves a copy of the table (hard links) on loopback; bench/front stands before it, counts requests and bytes, and
delays each request for the timed runs. icefs is mounted afresh, on an empty cache folder, for every run but those called
warm, which are another mount on the folder of the run before; what mounting asks for is counted. Each query is a new process
of DuckDB, and the two take turns. The exit status is 1 if answers differ.
"""
import argparse, json, os, shutil, signal, socket, statistics, subprocess, sys, tempfile, time, urllib.request
from harness import QUERIES, Table, parquet

JOB = """
import duckdb, json, sys, time
sql, setup, peer = json.loads(sys.argv[1])
db = duckdb.connect(config={"threads": 2})
db.execute("SET enable_progress_bar = false")
if peer:
    import duckdb_extensions
    for name in ("httpfs", "avro", "iceberg"):
        duckdb_extensions.import_extension(name)
        db.execute("LOAD " + name)
    for line in setup:
        db.execute(line)
began = time.perf_counter()
answer = db.execute(sql).fetchall()
print(json.dumps([time.perf_counter() - began, str(answer)]))
"""
KEY, SECRET = "bench", "bench-secret"
ONE = "SELECT sum(l_extendedprice) FROM {from}"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Front:
    """A store behind bench/front."""

    def __init__(self, a, store, delay):
        self.port = free_port()
        self.process = subprocess.Popen([a.front, "-to", store, "-listen", f"127.0.0.1:{self.port}", "-delay", delay])
        self.url = f"http://127.0.0.1:{self.port}"
        for _ in range(100):
            try:
                self.counts()
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit("bench/front does not start")

    def counts(self):
        """What was asked since the last time."""
        return json.load(urllib.request.urlopen(self.url + "/-/counts"))


class Remote:
    """The table in the store; version names its metadata file."""

    def __init__(self, a, version):
        self.a, self.version = a, version

    def run(self, sql, front=None):
        setup = [] if front is None else [f"SET s3_endpoint = '127.0.0.1:{front.port}'", "SET s3_use_ssl = false", "SET s3_url_style = 'path'",
                                          f"SET s3_access_key_id = '{KEY}'", f"SET s3_secret_access_key = '{SECRET}'", "SET s3_region = 'us-east-1'"]
        done = subprocess.run([sys.executable, "-c", JOB, json.dumps([sql, setup, front is not None])], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{done.stderr.strip()}\n{sql}")
        return json.loads(done.stdout)

    def icefs(self, front, sql, snapshot, cache):
        """Seconds of the query, and what was asked of the store from mounting on."""
        point = tempfile.mkdtemp(prefix="icefs-bench-")
        front.counts()
        server = subprocess.Popen([self.a.icefs, "mount", "--cache-dir", cache, "--log-level", "error", "--s3-endpoint", front.url, "s3://bench/table", point],
                                  env={**os.environ, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"})
        try:
            while not os.path.ismount(point):
                if server.poll() is not None:
                    raise SystemExit("icefs mount failed")
                time.sleep(0.005)
            seconds, answer = self.run(sql.replace("{from}", parquet(f"{point}/snapshots/{snapshot}/data.parquet")))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
            os.rmdir(point)
        return seconds, answer, front.counts()

    def peer(self, front, sql, snapshot):
        front.counts()
        scan = (f"iceberg_scan('s3://bench/table', version = '{self.version}', version_name_format = '%s%s.metadata.json', "
                f"allow_moved_paths = true, snapshot_from_id = {snapshot}::UBIGINT)")
        seconds, answer = self.run(sql.replace("{from}", scan), front)
        return seconds, answer, front.counts()


def measure(r, what, front, sql, snapshot, rounds):
    """Runs a query in turns, and prints its lines; returns the answers."""
    took, counts, answers = {"icefs": [], "warm": [], "peer": []}, {}, set()
    for _ in range(rounds):
        cache = tempfile.mkdtemp(prefix="icefs-bench-cache-")
        try:
            for way in ("icefs", "peer", "warm"):
                seconds, answer, counts[way] = r.peer(front, sql, snapshot) if way == "peer" else r.icefs(front, sql, snapshot, cache)
                took[way].append(seconds)
                answers.add(answer)
        finally:
            shutil.rmtree(cache, ignore_errors=True)
    m = {way: statistics.median(t) for way, t in took.items()}
    i, p, w = counts["icefs"], counts["peer"], counts["warm"]
    print(f"{what:34} requests {i['Requests']:4} / {p['Requests']:4} = {i['Requests'] / p['Requests']:.2f}   bytes {i['Bytes'] / 1e6:6.1f} / {p['Bytes'] / 1e6:6.1f} MB = {i['Bytes'] / p['Bytes']:.2f}"
          f"   seconds {m['icefs']:6.2f} / {m['peer']:6.2f} = {m['icefs'] / m['peer']:.2f}   warm {m['warm']:5.2f} s, {w['Gets']} for bytes of {w['Requests']}   load {os.getloadavg()[0]:.1f}", flush=True)
    return answers


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("icefs", "front", "gateway", "table", "ids"):
        ap.add_argument("--" + name, required=True)
    ap.add_argument("--branches", default="base,random")
    ap.add_argument("--rounds", type=int, default=3)
    a = ap.parse_args()
    for name in ("icefs", "front", "gateway", "table"):
        setattr(a, name, os.path.abspath(getattr(a, name)))
    root = tempfile.mkdtemp(prefix="icefs-bench-store-", dir=os.path.dirname(a.table))
    started, wrong = [], []
    try:
        shutil.copytree(a.table, f"{root}/bench/table", copy_function=os.link)
        table = Table(a.table, a.ids)
        port = free_port()
        started.append(subprocess.Popen([a.gateway, "--port", f"127.0.0.1:{port}", "--quiet", "posix", "--nometa", root],
                                        env={**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        plain, slow = (Front(a, f"http://127.0.0.1:{port}", delay) for delay in ("0s", "50ms"))
        started += [plain.process, slow.process]
        r = Remote(a, table.metadata.name.removesuffix(".metadata.json"))
        for branch in a.branches.split(","):
            for what, front, sql, rounds in (("one column", plain, ONE, 1), ("q6", plain, QUERIES["q6"], 1), ("q6, 50 ms a request", slow, QUERIES["q6"], a.rounds)):
                if len(answers := measure(r, f"{branch}: {what}", front, sql, table.ids[branch], rounds)) > 1:
                    wrong.append(f"{branch}: {what}: {answers}")
    finally:
        for process in started:
            process.terminate()
            process.wait(20)
        shutil.rmtree(root)
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
