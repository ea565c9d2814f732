"""Queries in DuckDB: fresh mount, filled cache folder, warm; against iceberg_scan and the raw files.

  raw      later runs over the data files, nothing deleted
  peer     later runs of iceberg_scan
  first    its first run: what a new DuckDB takes longer for, over icefs too
  fresh    first run on a fresh mount with an empty cache folder
  cached   first run on a fresh mount with the folder so filled
  warm     later runs on the same mount
"""

from harness import QUERIES, median_ms, parquet

ORDER = 10
WAYS = ("raw", "peer", "first", "fresh", "cached", "warm")
RATIOS = (("fresh", "peer"), ("cached", "peer"), ("warm", "peer"), ("warm", "raw"), ("fresh", "first"), ("cached", "first"))


def query(bench, name, sql, snapshot):
    """Times a query in every way, in turns, and prints its line."""
    took = {way: [] for way in WAYS}
    answers, peak, peer_too_slow = [], 0.0, False
    for _ in range(bench.args.rounds):
        seconds, _ = bench.run("duckdb", 2, sql.replace("{from}", bench.table.raw_files()))
        took["raw"].append(seconds[-1])
        if not peer_too_slow:
            seconds, answer = bench.run("duckdb", 2, sql.replace("{from}", bench.table.peer(snapshot)), extensions=True, limit=bench.args.peer_limit)
            peer_too_slow = seconds is None
            answers.append(answer)
            took["peer"] += seconds[-1:] if seconds else [bench.args.peer_limit]
            took["first"] += seconds[:1] if seconds else [bench.args.peer_limit]
        with bench.cache() as cache:
            for way in ("fresh", "cached"):
                with bench.mount(cache) as mount:
                    seconds, answer = bench.run("duckdb", 5 if way == "fresh" else 1, sql.replace("{from}", parquet(mount.view(snapshot))))
                took[way].append(seconds[0])
                took["warm"] += seconds[1:]
                answers.append(answer)
                peak = max(peak, mount.peak)
    bench.same(f"{name} on snapshot {snapshot}", answers)
    m = {way: median_ms(s) for way, s in took.items()}
    bench.say(f"{name:6}" + "".join(f"{m[way]:9.0f}" for way in WAYS) + "".join(f"{m[a] / m[b]:13.2f}" for a, b in RATIOS)
              + f"{peak:10.0f}" + ("  (iceberg_scan is over the limit)" if peer_too_slow else ""))


def run(bench):
    for branch in bench.args.branches.split(","):
        bench.say(f"{branch}\n      " + "".join(f"{way:>9}" for way in WAYS) + "".join(f"{a + '/' + b:>13}" for a, b in RATIOS) + "  peak MiB")
        for name in bench.args.queries.split(","):
            query(bench, name, QUERIES[name], bench.table.ids[branch])
