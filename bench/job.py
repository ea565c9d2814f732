"""Runs one job in a process of its own: python job.py JSON. It prints the seconds of its runs and the answer, as JSON.

A job has an engine (duckdb, pyarrow, polars), the number of runs, threads, and a query or paths and columns; DuckDB loads
its Iceberg extension if "extensions" is true.
"""

import json
import sys
import time


def duckdb_run(job):
    import duckdb

    db = duckdb.connect(config={"threads": job["threads"]})
    db.execute("SET enable_progress_bar = false")
    if job["extensions"]:
        import duckdb_extensions

        for name in ("avro", "iceberg"):
            duckdb_extensions.import_extension(name)
            db.execute(f"LOAD {name}")
    return lambda: db.execute(job["query"]).fetchall()


def pyarrow_run(job):
    import pyarrow
    import pyarrow.compute
    import pyarrow.dataset

    pyarrow.set_cpu_count(job["threads"])

    def run():
        table = pyarrow.dataset.dataset(job["paths"], format="parquet").to_table(columns=job["columns"])
        return [str(pyarrow.compute.sum(table[name])) for name in job["columns"]]

    return run


def polars_run(job):
    import polars

    return lambda: polars.scan_parquet(job["paths"], hive_partitioning=False).select(polars.col(job["columns"]).sum()).collect().rows()


def main():
    job = json.loads(sys.argv[1])
    run = {"duckdb": duckdb_run, "pyarrow": pyarrow_run, "polars": polars_run}[job["engine"]](job)
    seconds = []
    for _ in range(job["runs"]):
        start = time.perf_counter()
        answer = run()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds, "answer": str(answer)}))


if __name__ == "__main__":
    main()
