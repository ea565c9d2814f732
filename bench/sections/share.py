"""What finding live rows takes of the server's processor time in the first q1: samples in package deletes, by pprof."""

import pathlib
import re
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

from harness import JOB, QUERIES, load, parquet

ORDER = 25
SECONDS = 3  # that a profile is taken for


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def profile(bench, snapshot, path):
    """Writes the profile of a first q1 on a fresh mount."""
    address = f"127.0.0.1:{free_port()}"
    with bench.cache() as cache, bench.mount(cache, flags=("--metrics-addr", address)) as mount:
        def take():
            with urllib.request.urlopen(f"http://{address}/debug/pprof/profile?seconds={SECONDS}") as answer:
                path.write_bytes(answer.read())

        taking = threading.Thread(target=take)
        taking.start()
        time.sleep(0.2)
        bench.run("duckdb", 1, QUERIES["q1"].replace("{from}", parquet(mount.view(snapshot))))
        taking.join()


def top(profiles, focus=()):
    """Milliseconds of the samples that have a function of focus on their stack, and of all."""
    out = subprocess.run(["go", "tool", "pprof", "-unit=ms", "-top", *focus, *map(str, profiles)], capture_output=True, text=True, check=True, cwd=JOB.parent.parent).stdout
    total = float(re.search(r"Total samples = ([\d.]+)ms", out).group(1))
    shown = re.search(r"accounting for ([\d.]+)ms", out)
    return float(shown.group(1)) if shown else 0.0, total


def run(bench):
    with tempfile.TemporaryDirectory() as folder:
        taken = {}
        for branch in ("random-6.1", "random", "clustered"):
            profiles = [pathlib.Path(folder) / f"{branch}-{i}.pprof" for i in range(2 * bench.args.rounds)]
            for path in profiles:
                profile(bench, bench.table.ids[branch], path)
            taken[branch], total = top(profiles, ("-focus=icefs/deletes\\.",))
            bench.say(f"{branch:12}{taken[branch]:6.0f} of {total:6.0f} ms in package deletes, {100 * taken[branch] / total:4.1f} % ({len(profiles)} runs, {load()})")
        if taken["random"]:
            bench.say(f"clustered deletes / random ones: {taken['clustered'] / taken['random']:.2f}")
