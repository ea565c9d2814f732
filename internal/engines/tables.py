"""The recorded tables: their snapshots through icefs mounts with the rows that each has to have, and the count of checks."""
import argparse, errno, fnmatch, gzip, json, os, shlex, shutil, signal, subprocess, tempfile, time


def arguments():
    ap = argparse.ArgumentParser()
    ap.add_argument("--icefs", required=True)
    ap.add_argument("--tables", required=True)
    ap.add_argument("--only", default="*")
    ap.add_argument("--mount-args", default="")
    return ap.parse_args()


class Snapshot:
    """a recorded snapshot: its name, the Parquet view, its Iceberg schema, and its rows as recorded"""

    def __init__(self, tag, path, recorded, rows):
        self.tag, self.path, self.rows = tag, path, rows
        self.schema = json.load(open(recorded))["iceberg_schema"]
        self.types = json.dumps(self.schema)

    def lines(self):
        return gzip.open(self.rows, "rt", encoding="utf-8", errors="surrogatepass").read().split("\n")[:-1]


def snapshots(a):
    """all snapshots that have to be served, of the tables that a.only selects; mounts last as long as the iteration"""
    mounts = {}
    try:
        for table in sorted(os.listdir(a.tables + "/expected")):
            folder = f"{a.tables}/expected/{table}"
            if not selected(table, a.only) or not os.path.exists(folder + "/index.json"):
                continue
            index = json.load(open(folder + "/index.json"))
            if index["source"].startswith("object-store/") or index.get("must_error"):
                continue
            source = os.path.join(a.tables, index["source"])
            if source not in mounts:
                allowed = ["--allow-path", a.tables + "/elsewhere"] if table == "data_path" else []
                mounts[source] = mount(a.icefs, source, shlex.split(a.mount_args) + allowed)
            for s in index["snapshots"]:
                sid = s["snapshot_id"]
                path = os.path.join(mounts[source][1], index["mount_path"], f"snapshots/{sid}/data.parquet")
                if s.get("must_error") or not s.get("rows") or (index.get("may_error") and unreadable(path)):
                    continue
                yield Snapshot(f"{table}/{sid}", path, f"{folder}/{sid}.schema.json", f"{folder}/{s['rows']}")
    finally:
        for mounted in mounts.values():
            unmount(*mounted)


def unreadable(path):
    try:
        with open(path, "rb") as f:
            while f.read(1 << 20):
                pass
    except OSError as e:
        return e.errno in (errno.EIO, errno.EOPNOTSUPP, errno.ESTALE)
    return False


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, name, fn):
        try:
            err = fn()
        except BaseException as e:  # engines raise their panics as BaseException
            if isinstance(e, KeyboardInterrupt):
                raise
            err = f"{type(e).__name__}: {e}"[:400]
        if err:
            self.failed += 1
            print(f"FAIL {name}: {err}", flush=True)
        else:
            self.passed += 1

    def report(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def mount(binary, source, args):
    mnt, cache = tempfile.mkdtemp(prefix="icefs-engines-"), tempfile.mkdtemp(prefix="icefs-engines-cache-")
    p = subprocess.Popen([binary, "mount", "--cache-dir", cache, *args, source, mnt], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(400):
        if os.path.ismount(mnt):
            return p, mnt, cache
        if p.poll() is not None:
            raise SystemExit(f"icefs exited {p.returncode}")
        time.sleep(0.05)
    p.kill()
    raise SystemExit("not mounted after 20 s")


def unmount(p, mnt, cache):
    p.send_signal(signal.SIGTERM)
    try:
        p.wait(30)
    except subprocess.TimeoutExpired:
        p.kill()
        subprocess.run(["umount", "-l", mnt])
    os.rmdir(mnt)
    shutil.rmtree(cache)


def selected(name, only):
    globs = only.split(",")
    return any(fnmatch.fnmatch(name, g) for g in globs if g[0] != "!") and not any(fnmatch.fnmatch(name, g[1:]) for g in globs if g[0] == "!")
