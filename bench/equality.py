"""Times equality deletes: 120,000 keys of one and of two columns over the table of 6 million rows. `make bench-equality` runs it;
docs/performance.md tells what it gave.

  cold     stat of data.parquet on a fresh mount with an empty cache folder, which finds the positions of all deleted rows, over a hash
           anti-join of the same key columns of the raw files with the same keys in DuckDB, which only counts the rows that are left;
           and how much memory the server had at most, above what it had before
  grown    stat on the same mount of the next snapshot, which adds 20,000 keys, over cold of that snapshot
  queries  q1, q6, range and wide together on a fresh mount with an empty cache folder, over the same with deletion vectors

Every timing is taken in turns; printed are medians in milliseconds and ratios of medians.
"""

import argparse
import csv
import pathlib
import statistics
import time

import run

FORMS = {"equality": ["l_orderkey"], "equality-2": ["l_orderkey", "l_linenumber"]}
TOGETHER = ("q1", "q6", "range", "wide")


def peak(pid):
    """The most memory that a process has had, in MiB."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("no peak memory")


def processor(pid):
    """The processor time of a process, in milliseconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return 10 * (int(fields[11]) + int(fields[12]))


class Equality(run.Bench):
    def deletes(self, snapshot):
        """The equality-delete files of a snapshot."""
        with self.cache() as cache, self.mount(cache) as point:
            rows = csv.DictReader((pathlib.Path(point) / "snapshots" / snapshot / "files.csv").open())
            names = {pathlib.PurePath(part.strip('"')).name for row in rows for value in row.values() for part in (value or "").split()
                     if "eq-deletes" in part}
        return sorted(str(self.table / "data" / name.strip(";,[]\"'")) for name in names)

    def stats(self, *snapshots):
        """Stats data.parquet of snapshots on one fresh mount: milliseconds, processor time, and MiB above the first."""
        took = []
        with self.cache() as cache, self.mount(cache) as point:
            next(pathlib.Path(point).iterdir())
            pid, base = self.server, peak(self.server)
            for snapshot in snapshots:
                used, start = processor(pid), time.perf_counter()
                pathlib.Path(self.view(point, snapshot)).stat()
                took.append((1000 * (time.perf_counter() - start), processor(pid) - used, peak(pid) - base))
        return took

    def cold(self, branch, snapshot):
        columns = FORMS[branch]
        join = " AND ".join(f"r.{c} IS NOT DISTINCT FROM k.{c}" for c in columns)
        sql = f"SELECT count(*) FROM read_parquet({self.raw}) r ANTI JOIN read_parquet({self.deletes(snapshot)}) k ON {join}"
        peer, own, used, memory, left = [], [], [], [], set()
        for _ in range(self.args.rounds):
            seconds, answer = self.run("duckdb", 2, sql)
            peer.append(1000 * seconds[-1])
            left.add(answer)
            (ms, cpu, mib), = self.stats(snapshot)
            own.append(ms)
            used.append(cpu)
            memory.append(mib)
        with self.cache() as cache, self.mount(cache) as point:
            _, answer = self.run("duckdb", 1, f"SELECT count(*) FROM read_parquet('{self.view(point, snapshot)}', hive_partitioning = false)")
        if left != {answer}:
            self.wrong.append(f"{branch}: {answer} rows, the anti-join leaves {left}")
        a, b = statistics.median(own), statistics.median(peer)
        print(f"cold, {len(columns)} column{'s' * (len(columns) > 1)}: {a:.0f} ms (processor {statistics.median(used):.0f} ms), anti-join "
              f"{b:.0f} ms, {a / b:.2f} (limit 2); memory +{max(memory):.0f} MiB (limit 300)", flush=True)

    def grown(self, first, then):
        grown, cold = [], []
        for _ in range(self.args.rounds):
            grown.append(self.stats(first, then)[1][:2])
            cold.append(self.stats(then)[0][:2])
        g, c = (statistics.median(ms for ms, _ in took) for took in (grown, cold))
        gc, cc = (statistics.median(cpu for _, cpu in took) for took in (grown, cold))
        print(f"grown by 20,000 keys: {g:.0f} ms, cold {c:.0f} ms, {g / c:.2f} (limit 0.5); processor {gc:.0f} of {cc:.0f} ms", flush=True)

    def together(self, snapshot):
        with self.cache() as cache, self.mount(cache) as point:
            source = f"read_parquet('{self.view(point, snapshot)}', hive_partitioning = false)"
            return 1000 * sum(self.run("duckdb", 1, run.QUERIES[q].replace("{from}", source))[0][0] for q in TOGETHER)

    def queries(self, equality, vectors):
        a, b = [], []
        for _ in range(self.args.rounds):
            a.append(self.together(equality))
            b.append(self.together(vectors))
        a, b = statistics.median(a), statistics.median(b)
        print(f"{', '.join(TOGETHER)} fresh: {a:.0f} ms, with deletion vectors {b:.0f} ms, {a / b:.2f} (limit 5)", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Time equality deletes against DuckDB's anti-join and against deletion vectors.")
    parser.add_argument("--icefs", default="./icefs")
    parser.add_argument("--table", required=True, help="what bench/lineitem wrote")
    parser.add_argument("--ids", required=True, help="what it printed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.icefs = str(pathlib.Path(args.icefs).resolve())
    bench = Equality(args)
    ids = dict(line.split() for line in pathlib.Path(args.ids).read_text().splitlines())
    for branch in FORMS:
        bench.cold(branch, ids[branch])
    bench.grown(ids["equality"], ids["equality-more"])
    bench.queries(ids["equality"], ids["random"])
    if bench.wrong:
        raise SystemExit("ROWS DIFFER\n" + "\n".join(bench.wrong))


if __name__ == "__main__":
    main()
