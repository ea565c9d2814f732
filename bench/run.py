"""Times work over icefs against the same work over the raw data files, from which nothing is deleted, and over DuckDB's
iceberg_scan, which applies the deletes itself. `make bench` runs it; docs/performance.md tells what it gave.

Each module of bench/sections is a section: its docstring's first line is its help, run(bench) prints it. They run in the
order of their ORDER; --section takes some of them, and --list names them. The exit status is 1 if any answer differed.
"""

import argparse
import importlib
import pathlib
import pkgutil
import time

import harness
import sections


def found():
    """The sections by name, in their order."""
    modules = {m.name: importlib.import_module(f"sections.{m.name}") for m in pkgutil.iter_modules(sections.__path__)}
    return dict(sorted(modules.items(), key=lambda item: item[1].ORDER))


def main():
    here = pathlib.Path(__file__).parent
    parser = argparse.ArgumentParser(description="Time queries over icefs against raw files and iceberg_scan.")
    parser.add_argument("--icefs", default="./icefs")
    parser.add_argument("--table", default=here / "data" / "lineitem", help="what bench/lineitem wrote")
    parser.add_argument("--ids", default=here / "data" / "lineitem.ids", help="what it printed")
    parser.add_argument("--data", default=here / "data", help="where sections make tables of their own")
    parser.add_argument("--section", default="", help="comma-separated (default all)")
    parser.add_argument("--list", action="store_true", help="list the sections")
    parser.add_argument("--branches", default="random,base,clustered", help="of section queries")
    parser.add_argument("--queries", default=",".join(harness.QUERIES), help="of section queries")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peer-limit", type=float, default=120, help="seconds that iceberg_scan gets for a query")
    args = parser.parse_args()
    known = found()
    if args.list:
        for name, module in known.items():
            print(f"{name:10}{module.__doc__.splitlines()[0]}")
        return
    bench = harness.Bench(args)
    for name in args.section.split(",") if args.section else known:
        if name not in known:
            raise SystemExit(f"no section {name}: there are {', '.join(known)}")
        start = time.time()
        print(f"== {name}: {known[name].__doc__.splitlines()[0]} ({harness.load()})", flush=True)
        known[name].run(bench)
        print(f"   {time.time() - start:.0f} s, {harness.load()}\n", flush=True)
    if bench.wrong:
        raise SystemExit("ANSWERS DIFFER\n" + "\n".join(bench.wrong))


if __name__ == "__main__":
    main()
