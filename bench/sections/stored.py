"""Reading stored bytes from end to end: spliced, copied, passed through, and the raw file."""

import os
import time

from harness import median_ms

ORDER = 70


def read(path):
    """Reads a file whole, without what the kernel has cached of it; returns seconds and bytes."""
    buffer, total = bytearray(1 << 20), 0
    file = os.open(path, os.O_RDONLY)
    try:
        start = time.perf_counter()
        while n := os.readv(file, [buffer]):
            total += n
        return time.perf_counter() - start, total
    finally:
        os.close(file)


def run(bench):
    snapshot = bench.table.ids["base"]
    took, cpu = {}, {}
    for path in bench.table.raw:
        read(path)  # into the page cache
    for _ in range(bench.args.rounds):
        took.setdefault("raw files", []).append(sum(read(p)[0] for p in bench.table.raw))
        for way, flags in (("spliced", ()), ("copied", ("--layout-options", "kernel=off"))):
            with bench.cache() as cache, bench.mount(cache, flags=flags) as mount:
                view = mount.view(snapshot)
                os.stat(view)
                before = mount.cpu()
                took.setdefault(f"data.parquet, {way}", []).append(read(view)[0])
                cpu.setdefault(f"data.parquet, {way}", []).append(mount.cpu() - before)
                counters = mount.counters()
                folder = mount.view(snapshot, "parts")
                names = sorted(os.listdir(folder))
                for name in names:
                    os.stat(f"{folder}/{name}")
                before = mount.cpu()
                how = f"parts, {'passed through' if way == 'spliced' else 'copied'}"
                took.setdefault(how, []).append(sum(read(f"{folder}/{name}")[0] for name in names))
                cpu.setdefault(how, []).append(mount.cpu() - before)
                if way == "spliced":
                    spliced, passed = counters["spliced_bytes_total"], mount.counters()["passthrough_opens_total"]
    for way, seconds in took.items():
        extra = f", {median_ms(cpu[way]):.0f} ms of the server's processor time" if way in cpu else ""
        bench.say(f"{way:24}{median_ms(seconds):6.0f} ms, {median_ms(seconds) / median_ms(took['raw files']):.2f} of the raw files{extra}")
    bench.say(f"spliced {spliced >> 20} MiB; {passed} parts passed through")
