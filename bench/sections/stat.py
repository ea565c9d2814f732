"""What ls -l, stat and find cost on a fresh mount, against iceberg_scan's count(*)."""

import os
import subprocess
import time

from harness import QUERIES, median_ms

ORDER = 30


def run(bench):
    for branch in ("random", "base"):
        snapshot = bench.table.ids[branch]
        stat, ls, peer = [], [], []
        for _ in range(bench.args.rounds):
            with bench.cache() as cache, bench.mount(cache) as mount:
                start = time.perf_counter()
                os.stat(mount.view(snapshot))
                stat.append(time.perf_counter() - start)
            with bench.cache() as cache, bench.mount(cache, flags=("--views", "parquet,parts")) as mount:
                start = time.perf_counter()
                subprocess.run(["ls", "-lR", mount.view(snapshot, "")], check=True, capture_output=True)
                ls.append(time.perf_counter() - start)
            seconds, _ = bench.run("duckdb", 2, QUERIES["count"].replace("{from}", bench.table.peer(snapshot)), extensions=True)
            peer.append(seconds[-1])
        s, l, p = median_ms(stat), median_ms(ls), median_ms(peer)
        bench.say(f"{branch}: stat of data.parquet {s:.0f} ms, ls -lR of the snapshot with its parts {l:.0f} ms; iceberg_scan's count(*) {p:.0f} ms; "
                  f"stat/peer {s / p:.2f}")
    found = []
    for _ in range(bench.args.rounds):
        with bench.cache() as cache, bench.mount(cache) as mount:
            start = time.perf_counter()
            out = subprocess.run(["find", str(mount.point)], check=True, capture_output=True).stdout
            found.append(time.perf_counter() - start)
    bench.say(f"find over the table: {len(out.splitlines())} entries, {median_ms(found):.0f} ms")
