"""pyarrow and Polars: sums of two columns, warm, against the raw files."""

from harness import median_ms

ORDER = 50
COLUMNS = ("l_quantity", "l_discount")


def run(bench):
    for branch in ("random", "base"):
        snapshot = bench.table.ids[branch]
        for engine in ("pyarrow", "polars"):
            raw, fresh, warm = [], [], []
            for _ in range(bench.args.rounds):
                raw.append(bench.run(engine, 2, paths=bench.table.raw, columns=COLUMNS)[0][-1])
                with bench.cache() as cache, bench.mount(cache) as mount:
                    seconds, _ = bench.run(engine, 2, paths=[mount.view(snapshot)], columns=COLUMNS)
                fresh.append(seconds[0])
                warm.append(seconds[1])
            r, f, w = median_ms(raw), median_ms(fresh), median_ms(warm)
            bench.say(f"{branch}, {engine}: raw {r:.0f} ms, icefs fresh {f:.0f} ms, warm {w:.0f} ms; fresh/raw {f / r:.2f}, warm/raw {w / r:.2f}")
