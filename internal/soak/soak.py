#!/usr/bin/env python3
"""Have readers of many kinds read all recorded tables for a long time, through mounts under the race detector with little memory.

usage: soak.py --icefs BIN --race BIN --tables DIR [--duration 30m] [--warm-up 5m] [--memory 128MiB] [--cache-size 16MiB]

DIR holds warehouse/ and expected/<table>/index.json, as testdata/ does. --icefs first makes a copy of every file of every
snapshot; then the readers of readers.py read through mounts by it and by --race, a build with -race, all at once, and compare. Now and
then they rest, and what the mount holds then is looked at. Fails (exit code 1) on: a byte, a listing or an errno that differs;
a report of the race detector; a panic; a reader that is stuck; memory, descriptors, goroutines or threads at rest that
grow after the warm-up (a quarter of the time, at most 5 minutes, unless told); resident memory counts without the race
detector only.
"""
import argparse, collections, multiprocessing, os, re, signal, sys, time, traceback

from corpus import Corpus, sources
from readers import KINDS
from samples import LIMITS, RESIDENT, Server, ends, growth, scratch, self_check

VIEWS = ["--views", "parquet,csv,jsonl,parts,parts.csv,parts.jsonl"]
STUCK = 300   # seconds after which a step is called stuck
ENOUGH = 20   # failures after which the soak ends


def seconds(text):
    if not (m := re.fullmatch(r"(\d+)([smh])", text)):
        raise argparse.ArgumentTypeError("want a time such as 90s, 2m, 1h")
    return int(m[1]) * {"s": 1, "m": 60, "h": 3600}[m[2]]


class Crew:
    """reader processes. Each has a row of shared numbers: resting (1 or 0), start of its step, steps, reads, bytes"""

    RESTING, SINCE, STEPS, READS, BYTES, ROW = 0, 1, 2, 3, 4, 5

    def __init__(self, roots, corpus):
        self.names = [name for name, (_, n) in KINDS.items() for _ in range(n)]
        self.rows = multiprocessing.Array("d", self.ROW * len(self.names), lock=False)
        self.rest, self.end = multiprocessing.Value("i", 0, lock=False), multiprocessing.Value("i", 0, lock=False)
        self.failures = multiprocessing.Queue()
        self.processes = [multiprocessing.Process(target=self.work, args=(i, name, roots, corpus), daemon=True) for i, name in enumerate(self.names)]
        for p in self.processes:
            p.start()

    def get(self, i, column):
        return self.rows[i * self.ROW + column]

    def set(self, i, column, value):
        self.rows[i * self.ROW + column] = value

    def work(self, i, name, roots, corpus):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        reader = KINDS[name][0](roots, corpus, i)
        while not self.end.value:
            self.set(i, self.RESTING, self.rest.value)
            if self.rest.value:
                time.sleep(0.05)
                continue
            self.set(i, self.SINCE, time.monotonic())
            try:
                reader.turn()
                reader.step()
            except Exception as e:  # whatever a reader meets is for the report
                self.failures.put(f"{name}: {type(e).__name__}: {e}"[:1000] if isinstance(e, OSError) or type(e).__name__ == "Wrong" else f"{name}: {traceback.format_exc()}")
            self.set(i, self.STEPS, self.get(i, self.STEPS) + 1)
            self.set(i, self.READS, reader.reads)
            self.set(i, self.BYTES, reader.bytes)
        reader.close()
        self.set(i, self.RESTING, 1)

    def problem(self):
        """a reader that is stuck or gone, if one is"""
        for i, p in enumerate(self.processes):
            if not p.is_alive():
                return f"{self.names[i]}: its process ended with {p.exitcode}"
            if not self.get(i, self.RESTING) and time.monotonic() - self.get(i, self.SINCE) > STUCK and self.get(i, self.SINCE):
                return f"{self.names[i]}: stuck for {STUCK} s"
        return None

    def pause(self):
        """has all readers rest; whether they do"""
        self.rest.value = 1
        while any(not self.get(i, self.RESTING) for i in range(len(self.names))):
            if self.problem():
                return False
            time.sleep(0.05)
        time.sleep(1)
        return True

    def resume(self):
        self.rest.value = 0

    def stop(self):
        self.end.value = 1
        for p in self.processes:
            p.join(30)
            if p.is_alive():
                p.kill()

    def totals(self):
        sums = collections.defaultdict(lambda: [0, 0, 0])
        for i, name in enumerate(self.names):
            for k, column in enumerate((self.STEPS, self.READS, self.BYTES)):
                sums[name][k] += int(self.get(i, column))
        return sums


class Soak:
    """readers and servers for a while, and what was found"""

    def __init__(self, args, servers, crew):
        self.args, self.servers, self.crew, self.wrong = args, servers, crew, []
        self.start = time.monotonic()
        self.busy, self.rest = [], []   # (seconds, samples of the servers) among readers, and at rest

    def at(self):
        return time.monotonic() - self.start

    def failed(self, text):
        self.wrong.append(text)
        print(f"FAIL after {self.at():.0f} s: {text}", flush=True)

    def run(self):
        """a sample every 10 s, or 60 in all; 16 times after half of the warm-up also one at rest"""
        pause = max(2.0, min(10.0, self.args.duration / 60))
        rest_at = self.args.warm_up / 2
        every = (self.args.duration - rest_at) / 16
        while self.at() < self.args.duration and len(self.wrong) < ENOUGH:
            time.sleep(pause)
            self.collect()
            for s in self.servers:
                if s.process.poll() is not None:
                    self.failed(f"the mount of {s} ended: {s.log()[-4000:]}")
                    return
            if problem := self.crew.problem():
                self.failed(problem)
                return
            self.busy.append((self.at(), [s.sample() for s in self.servers]))
            if self.at() > rest_at:
                self.sample_at_rest()
                rest_at = self.at() + every

    def sample_at_rest(self):
        if self.crew.pause():
            samples = [s.sample(collect=True) for s in self.servers]
            self.rest.append((self.at(), samples))
            for s, sample in list(zip(self.servers, samples))[:2]:
                print(f"{self.at():5.0f} s  {'race ' if s.race else 'plain'} at rest: " + ", ".join(f"{v:.0f} {k}" for k, v in sample.items()), flush=True)
        self.crew.resume()

    def collect(self):
        while not self.crew.failures.empty():
            self.failed(self.crew.failures.get())

    def judge(self):
        """tells of growth after the warm-up; of what was among readers for information only"""
        for i, s in enumerate(self.servers):
            print(f"\n{s}")
            for kind, samples in (("at rest", self.rest), ("among readers", self.busy)):
                warm = [(t, v[i]) for t, v in samples if t > self.args.warm_up]
                if len(warm) < 3:
                    if kind == "at rest" and not self.wrong:
                        self.failed("too few samples at rest after the warm-up")
                    continue
                cached = ends([(t, v["cached MiB"]) for t, v in warm])
                print(f"  {'cached MiB':14} {kind:14} {len(warm):4} samples: {cached[0]:8.1f} -> {cached[1]:8.1f}")
                for name, limit in LIMITS.items():
                    more = RESIDENT * max(0.0, cached[1] - cached[0]) if name in ("resident MiB", "runtime MiB") else 0.0
                    first, last, rise, grows = growth([(t, v[name]) for t, v in warm], limit, more)
                    hours = (warm[-1][0] - warm[0][0]) / 3600
                    print(f"  {name:14} {kind:14} {len(warm):4} samples: {first:8.1f} -> {last:8.1f}, slope {rise / hours:+8.1f} an hour, most {max(v[name] for _, v in warm):.1f}")
                    if grows and kind == "at rest" and not (s.race and name == "resident MiB"):
                        self.failed(f"{name} of {s} grows: {first:.1f} to {last:.1f}, by its slope {rise:+.1f}\n{self.goroutines(s) if name == 'goroutines' else ''}")

    def goroutines(self, server):
        return server.get("/debug/pprof/goroutine?debug=1")[:8000]

    def report(self):
        print(f"\n{'kind':8} {'steps':>8} {'reads':>9} {'MiB':>9}")
        for name, (steps, reads, total) in self.crew.totals().items():
            print(f"{name:8} {steps:8} {reads:9} {total >> 20:9}")
            if not steps:
                self.failed(f"{name}: not one step")


def soak(args, folder, servers):
    os.mkdir(f"{folder}/copy")
    corpus, roots = Corpus(f"{folder}/copy"), []
    for i, (source, flags) in enumerate(sources(args.tables)):
        calm = Server(args.icefs, source, [*VIEWS, *flags], f"{folder}/calm-{i}")
        try:
            corpus.add(calm.mountpoint)
        finally:
            wrong = calm.stop()
        if wrong:
            raise SystemExit("\n".join(wrong))
    pools = corpus.choose()
    print(f"{len(pools['good'])} files of {sum(f.size for f in pools['good']) >> 20} MiB, {len(pools['bad'])} that cannot be served", flush=True)
    for i, (source, flags) in enumerate(sources(args.tables)):
        small = [*VIEWS, "--memory", args.memory, "--cache-size", args.cache_size, *flags]
        servers.append(Server(args.icefs, source, small, f"{folder}/plain-{i}"))
        servers.append(Server(args.race, source, small, f"{folder}/race-{i}", race=True))
        roots.append([s.mountpoint for s in servers[-2:]])
    wrong = [w for which in (0, 1) for w in corpus.differences([r[which] for r in roots])]  # which also has all names known, and all manifests read, before anything is measured
    crew = Crew(roots, corpus)
    run = Soak(args, servers, crew)
    for w in wrong:
        run.failed(w)
    try:
        run.run()
    finally:
        crew.stop()
    run.collect()
    run.judge()
    run.report()
    return run


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--icefs", required=True)
    ap.add_argument("--race", required=True)
    ap.add_argument("--tables", required=True)
    ap.add_argument("--duration", type=seconds, default=seconds("30m"))
    ap.add_argument("--warm-up", type=seconds)
    ap.add_argument("--memory", default="128MiB")
    ap.add_argument("--cache-size", default="16MiB")
    args = ap.parse_args()
    if args.warm_up is None:
        args.warm_up = min(300, args.duration // 4)
    args.tables = os.path.abspath(args.tables)
    self_check()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    servers, run = [], None
    with scratch() as folder:
        try:
            run = soak(args, folder, servers)
        finally:
            wrong = [w for s in servers for w in s.stop()]
        for w in wrong:
            run.failed(w)
    print(f"{len(run.wrong)} failures in {run.at():.0f} s, load {os.getloadavg()[0]:.1f}")
    return 1 if run.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
