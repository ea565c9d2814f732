"""Readers of mounted tables. Each step of one reads a little in its way and compares; Wrong says what was not as in the copy."""
import errno, hashlib, math, mmap, os, random, subprocess

import duckdb

from corpus import REFUSED


class Wrong(Exception):
    """something that a mount must not do"""


class Reader:
    """what steps have in common: files to choose from, and the mountpoints, of which a source has several. Counts reads and bytes."""

    def __init__(self, mountpoints, corpus, seed):
        self.mountpoints, self.corpus, self.random = mountpoints, corpus, random.Random(seed)
        self.pools, self.answers = corpus.choose(), {}
        self.reads = self.bytes = 0

    def turn(self):
        """chooses the mounts that the next step reads from"""
        self.roots = [self.random.choice(m) for m in self.mountpoints]

    def one(self, *pools):
        return self.random.choice(self.pools[self.random.choice([p for p in pools if self.pools[p]])])

    def path(self, file):
        return os.path.join(self.roots[file.mount], file.path)

    def known(self, key, make):
        """an answer from the copy, made once"""
        if key not in self.answers:
            self.answers[key] = make()
        return self.answers[key]

    def counted(self, n):
        self.reads += 1
        self.bytes += n

    def forget(self, fd):
        """has the kernel forget what it has of an open file, most of the time, so that later reads reach the server"""
        if self.random.random() < 0.8:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def forget_all(self, *files):
        for file in files:
            fd = os.open(self.path(file), os.O_RDONLY)
            try:
                self.forget(fd)
            finally:
                os.close(fd)

    def close(self):
        pass


class Preads(Reader):
    """ranges of 1 B to 1 MiB anywhere in a file: buffered, past the page cache, or mapped"""

    def step(self):
        file = self.one("whole", "whole", "good")
        way = self.random.choice(["pread", "direct", "mmap"])
        fd = os.open(self.path(file), os.O_RDONLY | (os.O_DIRECT if way == "direct" else 0))
        mapped = None
        try:
            if os.fstat(fd).st_size != file.size:
                raise Wrong(f"{file}: {os.fstat(fd).st_size} bytes, want {file.size}")
            if way == "mmap" and file.size:
                mapped = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
            for _ in range(self.random.randint(1, 10)):
                self.range(file, fd, mapped, way)
        finally:
            if mapped is not None:
                mapped.close()
            self.forget(fd)
            os.close(fd)

    def range(self, file, fd, mapped, way):
        n = int(math.exp(self.random.random() * math.log(1 << 20)))
        offset = self.random.randint(0, file.size)
        if way == "direct":
            got = self.direct(fd, n, offset)
            if got is None:
                return
        else:
            got = os.pread(fd, n, offset) if mapped is None else mapped[offset:offset + n]
        if got != file.read(offset, n):
            raise Wrong(f"{file}: {len(got)} bytes at {offset} by {way} differ")
        self.counted(len(got))

    def direct(self, fd, n, offset):
        """None where the file is passed through to one whose direct reads have to be aligned"""
        try:
            return os.pread(fd, n, offset)
        except OSError as e:
            if e.errno != errno.EINVAL:
                raise
            return None


class Hashes(Reader):
    """each file from beginning to end, in an order of its own, over and over"""

    def __init__(self, *args):
        super().__init__(*args)
        self.todo = []

    def step(self):
        if not self.todo:
            self.todo = self.random.sample(self.pools["good"], len(self.pools["good"]))
        file = self.todo.pop()
        digest = hashlib.sha256()
        with open(self.path(file), "rb", buffering=0) as f:
            while block := f.read(self.random.choice([4096, 65536, 1 << 20])):
                digest.update(block)
                self.counted(len(block))
            self.forget(f.fileno())
        if digest.hexdigest() != file.sha256:
            raise Wrong(f"{file}: another SHA-256 than the copy's")


class Greps(Reader):
    """grep -c over some text views at once"""

    def step(self):
        files = [self.one("text") for _ in range(self.random.randint(1, 5))]
        pattern = self.random.choice(["1", "99", '""', ",,", "null", "é", "ab", "2026-", "e"])
        got = self.grep(pattern, [self.path(f) for f in files])
        want = self.grep(pattern, [f.copy for f in files])
        if got != want:
            raise Wrong(f"grep -c {pattern} of {files}: {got}, want {want}")
        for f in files:
            self.counted(f.size)
        self.forget_all(*files)

    def grep(self, pattern, names):
        done = subprocess.run(["grep", "-acFhe", pattern, "--", *names], env={**os.environ, "LC_ALL": "C"}, capture_output=True, check=False)
        if done.returncode > 1:
            raise Wrong(f"grep: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.split()


# Queries over a column, or all: what a footer can answer, what a column can, and whole rows.
QUERIES = ["select count(*) from {t}", "select count({c}), min({c})::varchar, max({c})::varchar from {t}", "select count(*) from {t} where {c} is null",
           "select count(*), bit_xor(hash({c})) from {t}", "select bit_xor(hash(t)) from {t} t", "select * from {t} limit 3 offset {n}"]


class Queries(Reader):
    """DuckDB over Parquet views"""

    def __init__(self, *args):
        super().__init__(*args)
        self.duckdb = duckdb.connect(config={"threads": 2, "memory_limit": "512MB", "enable_external_file_cache": False})

    def step(self):
        file, query, n = self.one("parquet", "whole"), self.random.choice(QUERIES), self.random.randint(0, 2000)
        if not file.path.endswith(".parquet"):
            return
        columns = self.known(file, lambda: self.columns(file.copy))
        column = '"' + self.random.choice(columns).replace('"', '""') + '"'
        got = self.answer(query, self.path(file), column, n)
        want = self.answer(query, file.copy, column, n)
        if got != want:
            raise Wrong(f"{file}: {query} of {column}: {got}, want {want}")
        self.counted(0)
        self.forget_all(file)

    def columns(self, path):
        """the names of the columns; one that is none where DuckDB refuses the file, as it does one without columns"""
        try:
            return [d[0] for d in self.duckdb.sql(f"from {table(path)} limit 0").description]
        except duckdb.Error:
            return [""]

    def answer(self, query, path, column, n):
        """the rows as text, or the kind of error where DuckDB cannot do it"""
        try:
            return str(self.duckdb.sql(query.format(t=table(path), c=column, n=n)).fetchall())
        except duckdb.Error as e:
            # what follows quotes the query, cut where it gets long
            return f"{type(e).__name__}: {str(e).splitlines()[0].replace(path, 'FILE')}"

    def close(self):
        self.duckdb.close()


def table(path):
    quoted = path.replace("'", "''")
    return f"read_parquet('{quoted}', hive_partitioning=false)"


class Finds(Reader):
    """find over all trees, over and over: names, types, sizes, inodes, times, modes, targets"""

    def __init__(self, *args):
        super().__init__(*args)
        self.todo = []

    def step(self):
        if not self.todo:
            self.todo = [(i, tree) for i, trees in enumerate(self.corpus.listings) for tree in trees]
            self.random.shuffle(self.todo)
        mount, tree = self.todo.pop()
        if wrong := self.corpus.difference(self.roots, mount, tree):
            raise Wrong(wrong)
        self.reads += len(self.corpus.listings[mount][tree])


class Opens(Reader):
    """opens and closes many handles, several on one file, reads ends of files, asks for what is not there, and for what fails"""

    def step(self):
        files = [self.one("good", "whole") for _ in range(5)]
        handles = []
        try:
            for file in files:
                handles += [(file, os.open(self.path(file), os.O_RDONLY)) for _ in range(self.random.randint(1, 3))]
            self.random.shuffle(handles)
            for file, fd in handles:
                n = self.random.randint(0, min(file.size, 64))
                if os.pread(fd, 4096, file.size - n) != file.read(file.size - n, n) or os.fstat(fd).st_size != file.size:
                    raise Wrong(f"{file}: another end")
                self.counted(n)
        finally:
            for _, fd in handles:
                self.forget(fd)
                os.close(fd)
        self.absent(files[0])
        if self.pools["bad"]:
            self.fails(self.one("bad"))

    def absent(self, file):
        for name in ("absent", "data.csv.gz", "data.parquet.crc"):
            if os.path.exists(os.path.join(os.path.dirname(self.path(file)), name)):
                raise Wrong(f"{name} beside {file} is there")

    def fails(self, file):
        try:
            with open(self.path(file), "rb") as f:
                while f.read(1 << 20):
                    pass
        except OSError as e:
            if e.errno in REFUSED and e.errno == file.errno:
                return
            raise Wrong(f"{file}: errno {e.errno}, want {file.errno}") from e
        raise Wrong(f"{file}: read, want errno {file.errno}")


KINDS = {"preads": (Preads, 4), "sha256": (Hashes, 3), "grep": (Greps, 2), "duckdb": (Queries, 2), "find": (Finds, 1), "open": (Opens, 2)}
