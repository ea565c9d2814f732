"""A mount under the race detector, what it takes over time, and whether that grows."""
import glob, math, os, re, signal, statistics, subprocess, tempfile, time, urllib.request

# How much what is left at rest may grow after the warm-up: a part of itself, and an amount. "other heap" is the Go heap
# without the values of the memory cache, which may still be filling up to its budget.
# "runtime" is what the Go runtime holds of the machine's memory. Resident memory is judged without the race detector only:
# under it most is the detector's own (shadow of the heap, records of goroutines and locks), and grows while the heap does not.
# The cache folder's entries read last stay open, OPEN_ENTRIES at most, which a short run fills up to while it is sampled: by its
# slope such a rise is up to twice as high as it gets.
OPEN_ENTRIES = 64
LIMITS = {"resident MiB": (0.1, 16), "runtime MiB": (0.1, 16), "other heap MiB": (0.1, 8), "descriptors": (0, 8 + 2 * OPEN_ENTRIES), "goroutines": (0, 8), "threads": (0, 8)}

# How much resident memory a byte of the memory cache takes: itself, and as much for the collector.
RESIDENT = 2


class Server:
    """an icefs mount of a source; its log, and what the race detector says, are files in a folder of its own"""

    def __init__(self, binary, source, flags, folder, race=False):
        os.mkdir(folder)
        self.race = race
        self.folder, self.source, self.mountpoint = folder, source, f"{folder}/mnt"
        os.mkdir(self.mountpoint)
        env = {**os.environ, "GORACE": f"halt_on_error=0 log_path={folder}/race"}
        with open(f"{folder}/log", "wb") as log:
            self.process = subprocess.Popen([binary, "mount", "--cache-dir", f"{folder}/cache", "--metrics-addr", "127.0.0.1:0", *flags, source, self.mountpoint],
                                            stdout=log, stderr=log, env=env)
        for _ in range(600):
            if os.path.ismount(self.mountpoint):
                self.address = re.search(r"url=(http://[0-9.:]+)/metrics", self.log()).group(1)
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.process.kill()
        raise SystemExit(f"icefs does not mount {source}: {self.log()}")

    def __str__(self):
        return self.source + (", race detector" if self.race else "")

    def log(self):
        with open(f"{self.folder}/log", encoding="utf-8", errors="replace") as f:
            return f.read()

    def get(self, path):
        with urllib.request.urlopen(self.address + path, timeout=60) as answer:
            return answer.read().decode()

    def sample(self, collect=False):
        """what the process takes by LIMITS; collect: after a garbage collection"""
        if collect:
            self.get("/debug/pprof/heap?gc=1&debug=1")
        metrics = {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", self.get("/metrics"), re.M)}
        runtime = (metrics["go_memstats_sys_bytes"] - metrics["go_memstats_heap_released_bytes"]) / 2**20
        heap, cached = metrics["go_memstats_heap_alloc_bytes"] / 2**20, metrics["icefs_cache_bytes"] / 2**20
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            status = dict(re.findall(r"^(\w+):\s+(\d+)", f.read(), re.M))
        return {"resident MiB": int(status["VmRSS"]) / 1024, "runtime MiB": runtime, "other heap MiB": heap - cached, "cached MiB": cached,
                "descriptors": len(os.listdir(f"/proc/{self.process.pid}/fd")), "goroutines": metrics["go_goroutines"], "threads": int(status["Threads"])}

    def stop(self):
        """unmounts, and returns what was wrong with the process"""
        wrong = []
        self.process.send_signal(signal.SIGTERM)
        try:
            if self.process.wait(60):
                wrong.append(f"exit code {self.process.returncode} of the mount of {self}")
        except subprocess.TimeoutExpired:
            wrong.append(f"the mount of {self} has not ended 60 s after SIGTERM")
            self.process.kill()
            subprocess.run(["umount", "-l", self.mountpoint], check=False)
        for race in glob.glob(f"{self.folder}/race*"):
            with open(race, encoding="utf-8", errors="replace") as f:
                wrong.append(f"the race detector says:\n{f.read()}")
        wrong += [f"log: {line}" for line in self.log().splitlines() if re.search("panic|internal error|DATA RACE", line)]
        return wrong


def slope(points):
    """the median of the slopes between any two of the points (time, value): Theil and Sen's, which outliers do not move"""
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(points) for b in points[i + 1:] if b[0] > a[0]]
    return statistics.median(slopes) if slopes else 0.0


def ends(points):
    """the medians of the first and of the last third"""
    third = max(1, len(points) // 3)
    return [statistics.median(v for _, v in part) for part in (points[:third], points[-third:])]


def growth(points, limit, more=0.0):
    """compares the last third of points with the first, and their slope with none: (first, last, rise by the slope over all, grows).
    The limit is one of LIMITS, and so much more"""
    first, last = ends(points)
    rise = slope(points) * (points[-1][0] - points[0][0])
    most = limit[0] * first + limit[1] + more
    return first, last, rise, last - first > most or rise > most


def self_check():
    """growth finds a leak among noise, and none where there is none"""
    for name, limit in LIMITS.items():
        level, most = 100.0, limit[0] * 100 + limit[1]
        noise = [(t, level + most / 3 * math.sin(t * t)) for t in range(24)]
        if growth(noise, limit)[3] or not growth([(t, v + 2 * most * t / 23) for t, v in noise], limit)[3]:
            raise SystemExit(f"the check of {name} does not tell a leak from noise")


def scratch():
    return tempfile.TemporaryDirectory(prefix="icefs-soak-", ignore_cleanup_errors=True)
