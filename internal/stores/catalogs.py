#!/usr/bin/env python3
"""Judge the shared tables as real catalogs name them.

usage: catalogs.py --icefs BIN --tables DIR --judge FILE --jars DIR [--catalogs sqlite,postgres,rest,nessie,glue,hive]
                   [--only GLOBS] [--gateway BIN] [--nessie-java JAVA] [--moto BIN]

Registers every table of expected/*/index.json under its identifier in
  sqlite     a file, as Java's JdbcCatalog and pyiceberg keep it
  postgres   a PostgreSQL of its own (initdb, pg_ctl and psql have to be found), logged in to with a password
  rest       Iceberg's own test server for its REST API (RestServer.java)
  nessie     Nessie, in memory, with the tables of object-store/ alone; as it names a table's current snapshot and no
             other, each version of a table that made a snapshot current is registered as a table of its own
  glue       AWS Glue as moto's server speaks it (--moto), without the tables that are in namespaces of several levels
  hive       a Hive metastore (HiveServer.java), without the same tables
and runs the judge on a mount of it by name, from a .pyiceberg.yaml. --gateway is versitygw, which serves a copy of
object-store/ as S3: nessie needs it, and all but rest take the tables there, too, if it is given. Servers listen on loopback,
and end with this program. JARS holds the dependencies of pom.xml in rest/, those of hive/pom.xml in hive/, and Nessie's runner in nessie/. Nessie needs Java 21 or newer: --nessie-java, if that is not the java in PATH. Exits 1 if the judge does.
"""
import argparse, glob, json, os, shutil, signal, socket, sqlite3, subprocess, sys, tempfile, time
import urllib.error, urllib.parse, urllib.request

# What the judge leaves out: a format that is refused, and tables whose files are damaged or lie where no catalog leads.
EXCEPT = ("format_v4", "neg_missing_delete_file", "neg_pos_gone", "data_path")
CREATE = """CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
  metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, table_namespace, table_name))"""
NAME, PASSWORD = "real", "not-for-any-log"
KEY, SECRET, REGION = "icefs", "icefs-secret", "us-east-1"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait(what, ready, process, log, seconds=90):
    for _ in range(seconds * 5):
        if process.poll() is not None:
            raise SystemExit(f"{what} ended with {process.returncode}: {open(log).read()[-2000:] or 'its log is empty'}")
        if ready():
            return
        time.sleep(0.2)
    raise SystemExit(f"{what} is not ready after {seconds} s")


def answers(url):
    try:
        urllib.request.urlopen(url, timeout=5).read()
        return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        return urllib.request.urlopen(request, timeout=60).read()
    except urllib.error.HTTPError as e:
        if e.code == 409:
            return None  # it is there
        raise SystemExit(f"{url}: {e.code} {e.read()[:500]}")


def read_tables(a):
    """(name, namespace levels, table, metadata as baked, metadata on disk or None)"""
    tables = []
    for index in sorted(glob.glob(a.tables + "/expected/*/index.json")):
        t = json.load(open(index))
        if t["table"] in EXCEPT:
            continue
        levels = t["identifier"].split(".")[1:]
        remote = t["source"].startswith("object-store/")
        # vN.metadata.json is not unique: its table's folder is.
        name = os.path.basename(t["metadata"])
        found = [p for p in glob.glob(a.tables + "/**/" + name, recursive=True) if p.endswith("/".join(t["metadata"].split("/")[-3:]))]
        tables.append((t["table"], levels[:-1], levels[-1], t["metadata"], None if remote else found[0]))
    return tables


class Servers:
    def __init__(self):
        self.list = []

    def start(self, log, command, **more):
        p = subprocess.Popen(command, stdout=open(log, "ab"), stderr=subprocess.STDOUT, **more)
        self.list.append(p)
        return p

    def stop(self):
        for p in self.list:
            p.send_signal(signal.SIGTERM)
        for p in self.list:
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                p.kill()


def rows(tables):
    return [(NAME, ".".join(levels), table, baked, None, "TABLE") for _, levels, table, baked, _ in tables]


def gateway(a, work, servers, root=None):
    """serves root, or a copy of the object store, as the gateway keeps notes beside the objects; returns its URL"""
    if not root:
        root = work + "/s3"
        shutil.copytree(a.tables + "/object-store", root)
    port = free_port()
    env = {**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    p = servers.start(work + "/s3.log", [a.gateway, "--port", f"127.0.0.1:{port}", "--region", REGION, "posix", "--nometa", root], env=env)
    wait("versitygw", lambda: answers(f"http://127.0.0.1:{port}/"), p, work + "/s3.log")
    return f"http://127.0.0.1:{port}"


def sqlite(a, work, tables, servers):
    path = work + "/catalog.db"
    with sqlite3.connect(path) as db:
        db.execute(CREATE)
        db.executemany("INSERT INTO iceberg_tables VALUES (?,?,?,?,?,?)", rows(tables))
    db.close()
    return {"type": "sql", "uri": "sqlite:///" + path}


def postgres(a, work, tables, servers):
    # PostgreSQL does not run as root.
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    for tool in ("initdb", "postgres", "psql"):
        if not shutil.which(tool):
            raise SystemExit(f"there is no {tool}: install postgresql, and put its bin folder into PATH")
    port, data = free_port(), work + "/postgres"
    os.mkdir(data)
    os.chmod(work, 0o755)
    password = work + "/password"
    with open(password, "w") as f:
        f.write(PASSWORD)
    if user:
        shutil.chown(data, "postgres")
        shutil.chown(password, "postgres")
    subprocess.run([*user, "initdb", "-D", data, "-U", "icefs", "--auth", "scram-sha-256", "--pwfile", password, "-N"], check=True, stdout=subprocess.DEVNULL, cwd="/")
    p = servers.start(work + "/postgres.log", [*user, "postgres", "-D", data, "-k", data, "-h", "127.0.0.1", "-p", str(port), "-F"], cwd="/")
    env = {**os.environ, "PGPASSWORD": PASSWORD, "PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "icefs", "PGDATABASE": "postgres"}
    psql = lambda text: subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1"], input=text, text=True, env=env, capture_output=True).returncode == 0
    wait("postgres", lambda: psql("SELECT 1"), p, work + "/postgres.log")
    quote = lambda v: "NULL" if v is None else "'" + v.replace("'", "''") + "'"
    if not psql(CREATE + ";" + "".join(f"INSERT INTO iceberg_tables VALUES ({','.join(map(quote, r))});" for r in rows(tables))):
        raise SystemExit("the catalog could not be written to PostgreSQL")
    return {"type": "sql", "uri": f"postgresql+psycopg2://icefs:{PASSWORD}@127.0.0.1:{port}/postgres"}


def register(base, tables, location):
    for _, levels, table, baked, found in tables:
        for i in range(len(levels)):
            post(base + "/namespaces", {"namespace": levels[: i + 1]})
        path = urllib.parse.quote("\x1f".join(levels), safe="")
        post(f"{base}/namespaces/{path}/register", {"name": table, "metadata-location": location(baked, found)})


def java(a, jars, server, port, work):
    """the command that runs SERVER.java on JARS"""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), server + ".java")
    return ["java", "-Xmx512m", "-cp", ":".join(sorted(glob.glob(f"{a.jars}/{jars}/*.jar"))), source, str(port), work]


def rest(a, work, tables, servers):
    port = free_port()
    p = servers.start(work + "/rest.log", java(a, "rest", "RestServer", port, work))
    wait("Iceberg's REST server", lambda: answers(f"http://127.0.0.1:{port}/v1/config"), p, work + "/rest.log")
    register(f"http://127.0.0.1:{port}/v1", tables, lambda baked, found: found)
    return {"uri": f"http://127.0.0.1:{port}"}


def apart(a, work, tables):
    """writes what is expected of every snapshot as if it were its table's only one; returns the folder, and the tables,
    each named by the metadata file that made the snapshot current"""
    found = []
    for name, levels, table, baked, _ in tables:
        folder = os.path.join(a.tables, "expected", name)
        index = json.load(open(folder + "/index.json"))
        if any(r["type"] != "branch" or branch != "main" for branch, r in index["refs"].items()):
            raise SystemExit(f"{name} has more references than main, which Nessie does not name")
        versions = os.path.dirname(baked)
        current = {}  # snapshot -> the newest file in which it is current; their names begin with the version
        for path in sorted(glob.glob(f"{a.tables}/object-store/{versions.removeprefix('s3://')}/*.metadata.json")):
            current[json.load(open(path))["current-snapshot-id"]] = versions + "/" + os.path.basename(path)
        for i, snapshot in enumerate(index["snapshots"]):
            alone = f"{name}_{i + 1}"
            to = os.path.join(work, "tables", "expected", alone)
            shutil.copytree(folder, to)
            one = {**index, "table": alone, "identifier": ".".join([NAME, *levels, alone]), "snapshots": [snapshot],
                   "refs": {"main": {"snapshot-id": snapshot["snapshot_id"], "type": "branch"}}}
            if snapshot["snapshot_id"] != index["current_snapshot_id"]:
                one.pop("current", None)
            with open(to + "/index.json", "w") as f:
                json.dump(one, f)
            found.append((alone, levels, alone, current[snapshot["snapshot_id"]], None))
    return work + "/tables", found


def nessie(a, work, tables, servers):
    port, management = free_port(), free_port()
    runner = glob.glob(a.jars + "/nessie/nessie-quarkus-*-runner.jar")[0]
    settings = {
        "quarkus.http.host": "127.0.0.1", "quarkus.http.port": port, "quarkus.management.host": "127.0.0.1", "quarkus.management.port": management,
        "nessie.version.store.type": "IN_MEMORY", "nessie.server.authentication.enabled": "false",
        "nessie.catalog.default-warehouse": "wh", "nessie.catalog.warehouses.wh.location": "s3://icefs-bucket/wh",
        "nessie.catalog.service.s3.default-options.endpoint": a.s3, "nessie.catalog.service.s3.default-options.path-style-access": "true",
        "nessie.catalog.service.s3.default-options.region": REGION, "nessie.catalog.service.s3.default-options.access-key": "urn:nessie-secret:quarkus:s3key",
        "nessie.catalog.service.s3.default-options.request-signing-enabled": "false",
        "s3key.name": KEY, "s3key.secret": SECRET,
    }
    with open(work + "/application.properties", "w") as f:  # the key does not belong into the arguments
        f.writelines(f"{k}={v}\n" for k, v in settings.items())
    env = {**os.environ, "QUARKUS_CONFIG_LOCATIONS": work + "/application.properties", "SMALLRYE_CONFIG_LOCATIONS": work + "/application.properties"}
    p = servers.start(work + "/nessie.log", [a.nessie_java, "-Xmx1g", "-jar", runner], env=env, cwd=work)
    # With an older Java it ends without a word.
    wait("Nessie, which needs Java 21 or newer,", lambda: answers(f"http://127.0.0.1:{port}/iceberg/v1/config"), p, work + "/nessie.log", 180)
    register(f"http://127.0.0.1:{port}/iceberg/v1/main%7Cwh", tables, lambda baked, found: baked)
    return {"uri": f"http://127.0.0.1:{port}/iceberg", "warehouse": "wh"}


def glue(a, work, tables, servers):
    port = free_port()
    # In a folder of its own, and with keys that lead nowhere.
    keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": REGION}
    p = servers.start(work + "/moto.log", [a.moto, "-H", "127.0.0.1", "-p", str(port)], cwd=work, env={**os.environ, **keys})
    url = f"http://127.0.0.1:{port}"
    wait("moto", lambda: answers(url + "/moto-api/"), p, work + "/moto.log")

    def ask(action, **body):
        headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "AWSGlue." + action,
                   "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/20261130/{REGION}/glue/aws4_request, SignedHeaders=host, Signature=0"}
        urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=60).read()

    for database in sorted({levels[0] for _, levels, _, _, _ in tables}):
        ask("CreateDatabase", DatabaseInput={"Name": database})
    for _, levels, table, baked, found in tables:
        ask("CreateTable", DatabaseName=levels[0], TableInput={"Name": table, "TableType": "EXTERNAL_TABLE",
            "Parameters": {"table_type": "ICEBERG", "metadata_location": found or baked}})
    return {"type": "glue", "glue.endpoint": url, "glue.region": REGION, "glue.access-key-id": KEY, "glue.secret-access-key": SECRET}


def hive(a, work, tables, servers):
    port = free_port()
    with open(work + "/tables", "w") as f:
        f.writelines(f"{levels[0]}\t{table}\t{found or baked}\n" for _, levels, table, baked, found in tables)
        f.write("other\tnot_iceberg\t\n")
    p = servers.start(work + "/hive.log", java(a, "hive", "HiveServer", port, work), cwd=work)
    wait("the Hive metastore", lambda: os.path.exists(work + "/ready"), p, work + "/hive.log", 180)
    return {"type": "hive", "uri": f"thrift://127.0.0.1:{port}"}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("icefs", "tables", "judge", "jars"):
        ap.add_argument("--" + name, required=name != "jars")
    ap.add_argument("--catalogs", default="sqlite,postgres,rest")
    ap.add_argument("--only", default="*")
    ap.add_argument("--gateway")
    ap.add_argument("--nessie-java", default="java")
    ap.add_argument("--moto")
    a = ap.parse_args()
    for name in ("icefs", "tables", "judge", "jars", "gateway", "moto"):  # servers start in folders of their own
        setattr(a, name, getattr(a, name) and os.path.abspath(getattr(a, name)))
    all_tables, failed = read_tables(a), False
    for kind in a.catalogs.split(","):
        local, remote = [t for t in all_tables if t[4]], [t for t in all_tables if not t[4]]
        tables = {"rest": local, "nessie": remote}.get(kind, local + remote if a.gateway else local)
        if kind in ("glue", "hive"):
            tables = [t for t in tables if len(t[1]) == 1]
        work, servers, expected = tempfile.mkdtemp(prefix="icefs-catalog-"), Servers(), a.tables
        try:
            if kind == "nessie":
                expected, tables = apart(a, work, tables)
            a.s3 = gateway(a, work, servers) if a.gateway and kind != "rest" else None
            props = {"sqlite": sqlite, "postgres": postgres, "rest": rest, "nessie": nessie, "glue": glue, "hive": hive}[kind](a, work, tables, servers)
            if a.s3:
                props.update({"s3.endpoint": a.s3, "s3.path-style-access": "true", "s3.region": REGION, "s3.access-key-id": KEY, "s3.secret-access-key": SECRET})
            with open(work + "/.pyiceberg.yaml", "w") as f:
                json.dump({"catalog": {NAME: props}}, f)  # JSON is YAML
            names = [t[0] for t in tables]
            if a.only != "*":
                import fnmatch
                names = [n for n in names if any(fnmatch.fnmatch(n, g) for g in a.only.split(","))]
            if not names:
                print(f"{kind}: no table of that name", flush=True)
                continue
            where = "" if kind == "nessie" else f"--allow-path {a.tables}/warehouse --allow-path {a.tables}/elsewhere"
            judged = subprocess.run([sys.executable, a.judge, "--icefs", a.icefs, "--tables", expected, "--source", NAME, "--only", ",".join(names), "--mount-args", where],
                                    env={**os.environ, "PYICEBERG_HOME": work})
            print(f"{kind}: {len(names)} tables, judge exit {judged.returncode}", flush=True)
            failed |= judged.returncode != 0
        finally:
            servers.stop()
            shutil.rmtree(work, ignore_errors=True)
    return failed


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers are stopped
    sys.exit(main())
