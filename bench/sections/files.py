"""stat of data.parquet over many data files: 100, 10,000, and 30,000 of one row; against DuckDB's count(*) of the raw files."""

import os
import time

from harness import QUERIES, load, median_ms, parquet

ORDER = 40
TABLES = ((100, 100), (10_000, 100), (30_000, 1))  # data files, rows of each


def run(bench):
    stats = {}
    for files, rows in TABLES:
        table = bench.generated(f"files-{files}", ("go", "run", "./bench/manyfiles", "-files", str(files), "-rows", str(rows)))
        snapshot = table.ids["main"]
        stat, count, raw, peak, answers = [], [], [], 0.0, []
        for _ in range(bench.args.rounds):
            with bench.cache() as cache, bench.mount(cache, table) as mount:
                start = time.perf_counter()
                os.stat(mount.view(snapshot))
                stat.append(time.perf_counter() - start)
                seconds, answer = bench.run("duckdb", 1, QUERIES["count"].replace("{from}", parquet(mount.view(snapshot))))
                count += seconds
                answers.append(answer)
                order = f"SELECT count(*) FROM (SELECT k, row_number() OVER () - 1 AS i FROM {parquet(mount.view(snapshot))}) WHERE k <> i"
                if bench.run("duckdb", 1, order)[1] != "[(0,)]":
                    bench.wrong.append(f"{files} files: the rows are in another order")
            peak = max(peak, mount.peak)
            seconds, answer = bench.run("duckdb", 1, QUERIES["count"].replace("{from}", f"read_parquet('{table.folder}/data/*.parquet')"))
            raw += seconds
            answers.append(answer)
        bench.same(f"count of {files} files", answers)
        stats[files] = median_ms(stat)
        bench.say(f"{files} files of {rows} rows: stat {stats[files]:.0f} ms, DuckDB's count(*) of the raw files {median_ms(raw):.0f} ms; stat/raw {stats[files] / median_ms(raw):.2f}; "
                  f"count(*) after it {median_ms(count):.0f} ms; peak RSS {peak:.0f} MiB ({load()})")
    bench.say(f"stat of 10,000 files / of 100: {stats[10_000] / stats[100]:.1f}")
