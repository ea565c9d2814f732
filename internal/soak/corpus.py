"""What a mount of recorded tables has to show: a copy of every file, and what find tells of the whole tree."""
import concurrent.futures, errno, hashlib, json, os, subprocess

# The errnos of a file that cannot be served.
REFUSED = (errno.EIO, errno.EOPNOTSUPP, errno.ESTALE)

# What is shown below .icefs changes while the mount is there.
LISTING = ["-name", ".icefs", "-prune", "-o", "-printf", r"%P\t%y\t%s\t%i\t%T@\t%m\t%l\0"]


def sources(tables):
    """the sources that the recorded tables are mounted from, with the flags each needs"""
    found = {}
    for table in sorted(os.listdir(f"{tables}/expected")):
        try:
            with open(f"{tables}/expected/{table}/index.json") as f:
                source = json.load(f)["source"]
        except FileNotFoundError:
            continue
        if not source.startswith("object-store/"):
            found.setdefault(source, []).extend(["--allow-path", f"{tables}/elsewhere"] if table == "data_path" else [])
    return [(f"{tables}/{source}", flags) for source, flags in found.items()]


class File:
    """a file of a mount: its path below the mountpoint; its copy with size and SHA-256, or the errno it fails with"""

    def __init__(self, mount, path, copy):
        self.mount, self.path, self.copy = mount, path, copy
        self.size = self.sha256 = self.errno = None

    def __repr__(self):
        return self.path

    def fill(self, root):
        """makes the copy"""
        digest, self.size = hashlib.sha256(), 0
        try:
            with open(os.path.join(root, self.path), "rb") as src, open(self.copy, "wb") as dst:
                while block := src.read(1 << 20):
                    dst.write(block)
                    digest.update(block)
                    self.size += len(block)
            self.sha256 = digest.hexdigest()
        except OSError as e:
            if e.errno not in REFUSED:
                raise
            self.errno = e.errno

    def read(self, offset, n):
        """bytes of the copy"""
        with open(self.copy, "rb") as f:
            f.seek(offset)
            return f.read(n)


class Corpus:
    """the files of all mounts, and the listings of each mount, by tree"""

    def __init__(self, folder):
        self.folder, self.files, self.listings = folder, [], []

    def add(self, root):
        """copies what is shown below a mountpoint; the mount's number is that of this call"""
        mount = len(self.listings)
        self.listings.append({tree: listing(root, tree) for tree in trees(root)})
        for path in paths(root):
            file = File(mount, path, f"{self.folder}/{len(self.files)}")
            file.fill(root)
            self.files.append(file)

    def differences(self, roots):
        """looks at every tree of other mounts once, some at a time; tells of those that are not listed as they were"""
        todo = [(mount, tree) for mount, trees in enumerate(self.listings) for tree in trees]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return [wrong for wrong in pool.map(lambda t: self.difference(roots, *t), todo) if wrong]

    def difference(self, roots, mount, tree):
        """what is wrong with a tree's listing, if anything"""
        got, want = listing(roots[mount], tree), self.listings[mount][tree]
        return f"find in {tree}: more: {sorted(got - want)[:3]}, fewer: {sorted(want - got)[:3]}" if got != want else None

    def choose(self):
        """files by what readers choose them for"""
        good = [f for f in self.files if f.errno is None]
        whole = [f for f in good if os.path.basename(f.path).startswith("data.")]
        text = [f for f in good if f.path.endswith((".csv", ".jsonl"))]
        parquet = [f for f in good if f.path.endswith(".parquet")]
        return {"good": good, "whole": whole, "text": text, "parquet": parquet, "bad": [f for f in self.files if f.errno is not None]}


def paths(root):
    """all files below a mountpoint, also those of snapshot folders that links lead to and that are not listed"""
    unlisted = set()
    for folder, folders, names in os.walk(root, onerror=raise_it):
        if ".icefs" in folders:
            folders.remove(".icefs")
        for name in names + folders:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                if "@schema-" in os.readlink(path):
                    unlisted.add(os.path.normpath(os.path.join(folder, os.readlink(path))))
            elif name in names:
                yield os.path.relpath(path, root)
    for top in sorted(unlisted):
        for folder, _, names in os.walk(top, onerror=raise_it):
            for name in names:
                yield os.path.relpath(os.path.join(folder, name), root)


def raise_it(error):
    raise error


def trees(root):
    """the folders below a mountpoint to list one by one, which together hold every table: those at most two deep; "" is the root"""
    if os.path.isdir(f"{root}/snapshots"):
        return [""]
    return sorted(f"{a}/{b}" for a in os.listdir(root) if a != ".icefs" for b in os.listdir(f"{root}/{a}"))


def listing(root, tree):
    """what find tells of everything in a tree: name, type, size, inode, mtime, mode, target. What cannot be served is not in it"""
    done = subprocess.run(["find", os.path.join(root, tree), *LISTING], env={**os.environ, "LC_ALL": "C"}, capture_output=True, check=False)
    return set(done.stdout.split(b"\0")[:-1])
