"""CSV and JSON Lines against DuckDB's COPY: measuring, reading, searching, the end of a file.

A long history and a long file are added where bench/lineitem has written them (make bench-text does)."""

import argparse
import pathlib

import text

ORDER = 80


def run(bench):
    args = bench.args
    made = {name: path for name in ("history", "links") if pathlib.Path(f"{path := pathlib.Path(args.data) / name}.ids").exists()}
    missed = text.run(argparse.Namespace(
        icefs=str(pathlib.Path(args.icefs).resolve()), table=args.table, ids=args.ids, rounds=min(args.rounds, 3), threads=args.threads,
        history=made.get("history"), links=made.get("links")))
    if missed:
        print("missed: " + ", ".join(missed), flush=True)
