"""Equality deletes of 120,000 keys: finding their rows against an anti-join in DuckDB, growing, and queries against vectors.

  cold     stat of data.parquet on a fresh mount with an empty cache folder, which finds the positions of all deleted rows, over a
           hash anti-join of the same key columns of the raw files with the same keys in DuckDB, which only counts the rows that are
           left; and how much memory the server took at most, above what it had before
  grown    stat on the same mount of the next snapshot, which adds 20,000 keys, over cold of that snapshot
  queries  q1, q6, range and wide one after the other on a fresh mount with an empty cache folder, over the same with vectors
"""

import ast
import time

from harness import QUERIES, median_ms, parquet

ORDER = 35

FORMS = {"equality": ["l_orderkey"], "equality-2": ["l_orderkey", "l_linenumber"]}
TOGETHER = ("q1", "q6", "range", "wide")


def run(bench):
    ids = bench.table.ids
    if "equality-more" not in ids:
        raise SystemExit("the table has no branch equality-more: make it anew (bench/lineitem)")
    for branch, columns in FORMS.items():
        cold(bench, ids[branch], columns)
    grown(bench, ids["equality"], ids["equality-more"])
    together(bench, ids["equality"], ids["random"])


def keys(bench, columns):
    """The largest equality-delete file of these columns."""
    folder = bench.table.folder / "data"
    files = f"'{folder}/eq-deletes-*.parquet'"
    sql = f"""SELECT file_name FROM parquet_file_metadata({files}) JOIN (SELECT file_name, list_sort(list(name)) names
              FROM parquet_schema({files}) WHERE type IS NOT NULL GROUP BY 1) USING (file_name)
              WHERE names = {sorted(columns)} ORDER BY num_rows DESC LIMIT 1"""
    return ast.literal_eval(bench.run("duckdb", 1, sql)[1])[0][0]


def stats(bench, *snapshots):
    """Stats data.parquet of snapshots on one fresh mount: of each the seconds, the processor's seconds, and MiB since the start."""
    took = []
    with bench.cache() as cache, bench.mount(cache) as mount:
        next(mount.point.iterdir())
        base = mount.resident()
        for snapshot in snapshots:
            used, start = mount.cpu(), time.perf_counter()
            (mount.point / "snapshots" / snapshot / "data.parquet").stat()
            took.append((time.perf_counter() - start, mount.cpu() - used, mount.resident() - base))
    return took


def cold(bench, snapshot, columns):
    join = " AND ".join(f"r.{c} IS NOT DISTINCT FROM k.{c}" for c in columns)
    sql = f"SELECT count(*) FROM {bench.table.raw_files()} r ANTI JOIN read_parquet('{keys(bench, columns)}') k ON {join}"
    peer, own, answers = [], [], []
    for _ in range(bench.args.rounds):
        seconds, answer = bench.run("duckdb", 2, sql)
        peer.append(seconds[-1])
        answers.append(answer)
        own += stats(bench, snapshot)
    answers.append(bench.fresh("SELECT count(*) FROM {from}", snapshot)[1])
    bench.same(f"rows left by keys of {columns}", answers)
    a, b = median_ms([o[0] for o in own]), median_ms(peer)
    bench.say(f"cold, {len(columns)} column(s): {a:6.0f} ms, anti-join {b:6.0f} ms, {a / b:5.2f} (limit 2); processor "
              f"{median_ms([o[1] for o in own]):.0f} ms; memory +{max(o[2] for o in own):.0f} MiB (limit 300)")


def grown(bench, first, then):
    grown, cold = [], []
    for _ in range(bench.args.rounds):
        grown.append(stats(bench, first, then)[1])
        cold += stats(bench, then)
    g, c = median_ms([t[0] for t in grown]), median_ms([t[0] for t in cold])
    bench.say(f"20,000 keys more: {g:6.0f} ms, cold {c:6.0f} ms, {g / c:5.2f} (limit 0.5); processor "
              f"{median_ms([t[1] for t in grown]):.0f} of {median_ms([t[1] for t in cold]):.0f} ms")


def together(bench, equality, vectors):
    took = {equality: [], vectors: []}
    for _ in range(bench.args.rounds):
        for snapshot in took:
            with bench.cache() as cache, bench.mount(cache) as mount:
                view = parquet(mount.view(snapshot))
                took[snapshot].append(sum(bench.run("duckdb", 1, QUERIES[q].replace("{from}", view))[0][0] for q in TOGETHER))
    a, b = median_ms(took[equality]), median_ms(took[vectors])
    bench.say(f"{', '.join(TOGETHER)} fresh: {a:6.0f} ms, with vectors {b:6.0f} ms, {a / b:5.2f} (limit 5)")
