"""The first q1 on a fresh mount by the share of deleted rows, and random deletes against clustered ones."""

from harness import QUERIES, median_ms

ORDER = 20


def run(bench):
    ids = bench.table.ids
    branches = ["base", "clustered", "random", *sorted((b for b in ids if b.startswith("random-")), key=lambda b: float(b.split("-")[1]))]
    took = {b: [] for b in branches}
    for _ in range(bench.args.rounds):
        for b in branches:
            took[b].append(bench.fresh(QUERIES["q1"], ids[b])[0][0])
    m = {b: median_ms(s) for b, s in took.items()}
    for b in branches:
        bench.say(f"{b:12}{m[b]:7.0f} ms {m[b] / m['base']:6.2f} of base" + (f" {m[b] / m['random-7']:6.2f} of 7 %" if "random-7" in m else ""))
    if m["random"] > m["base"]:
        bench.say(f"what clustered deletes add, over what random ones do: {(m['clustered'] - m['base']) / (m['random'] - m['base']):.2f}")
