#!/usr/bin/env python3
"""Judge the shared tables as they are in object stores.

usage: buckets.py --icefs BIN --tables DIR --judge FILE --store s3|gcs|azure --server BIN [--only GLOBS]

Serves a copy of object-store/, warehouse/ and elsewhere/ as one bucket, on loopback, by
  s3      versitygw, over plain files
  gcs     fake-gcs-server, which speaks Google's JSON API
  azure   Azurite (azurite-blob), Microsoft's emulator of Blob Storage
and runs the judge on a mount of each folder of it that is a warehouse. All but object-store/ were written to other places,
so that their paths lead elsewhere. With azure each way to log in lists tables, and a wrong key does not. No secret may be
in what icefs says. Exits 1 if anything fails.
"""
import argparse, base64, datetime, fnmatch, hashlib, hmac, os, secrets, shutil, signal, subprocess, sys, tempfile
import urllib.parse, urllib.request
from catalogs import KEY, REGION, SECRET, Servers, answers, free_port, gateway, read_tables, wait

BUCKET = "icefs-bucket"
ACCOUNT, ACCOUNT_KEY = "icefsaccount", base64.b64encode(secrets.token_bytes(32)).decode()


def collect(a, work):
    """copies the tables to work/buckets; returns those of each folder that is a warehouse"""
    bucket = f"{work}/buckets/{BUCKET}"
    shutil.copytree(f"{a.tables}/object-store/{BUCKET}", bucket)
    for folder in ("warehouse", "elsewhere"):
        shutil.copytree(f"{a.tables}/{folder}", f"{bucket}/{folder}")
    folders = {}
    for name, levels, table, baked, found in read_tables(a):
        if any(fnmatch.fnmatch(name, g) for g in a.only.split(",")):
            at = os.path.relpath(found, a.tables) if found else baked.split("/", 3)[3]
            folders.setdefault(at[: at.index("/".join(["", *levels, table, ""]))], []).append(name)
    return folders


def s3(a, work, servers):
    a.gateway = a.server
    url = gateway(a, work, servers, work + "/buckets")
    return "s3://" + BUCKET, {"s3.endpoint": url, "s3.region": REGION, "s3.access-key-id": KEY, "s3.secret-access-key": SECRET}


def gcs(a, work, servers):
    port = free_port()
    host = f"127.0.0.1:{port}"
    p = servers.start(work + "/gcs.log", [a.server, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-public-host", host,
                                          "-backend", "memory", "-data", work + "/buckets", "-log-level", "warn"], cwd=work)
    wait("fake-gcs-server", lambda: answers(f"http://{host}/storage/v1/b/{BUCKET}"), p, work + "/gcs.log")
    return "gs://" + BUCKET, {"gcs.service.host": "http://" + host, "gcs.no-auth": "true"}


def sas():
    """a token for the whole account, for an hour: learn.microsoft.com/rest/api/storageservices/create-account-sas"""
    until = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = "\n".join([ACCOUNT, "rwdlac", "b", "sco", "", until, "", "https,http", "2021-12-02", "", ""])
    signature = base64.b64encode(hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest())
    return urllib.parse.urlencode({"sv": "2021-12-02", "ss": "b", "srt": "sco", "sp": "rwdlac", "se": until, "spr": "https,http", "sig": signature})


def azure(a, work, servers):
    port = free_port()
    url = f"http://127.0.0.1:{port}/{ACCOUNT}"
    p = servers.start(work + "/azure.log", [a.server, "--blobPort", str(port), "--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"],
                      cwd=work, env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{ACCOUNT_KEY}"})
    wait("Azurite", lambda: answers(url), p, work + "/azure.log")
    token = sas()

    def put(path, query, body, **headers):
        request = urllib.request.Request(f"{url}/{urllib.parse.quote(path)}?{query}{token}", body, {"x-ms-version": "2021-12-02", **headers}, method="PUT")
        urllib.request.urlopen(request, timeout=60).read()

    put(BUCKET, "restype=container&", b"")
    for folder, _, names in os.walk(f"{work}/buckets/{BUCKET}"):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                put(os.path.relpath(path, work + "/buckets"), "", f.read(), **{"x-ms-blob-type": "BlockBlob"})
    source = f"abfss://{BUCKET}@{ACCOUNT}.dfs.core.windows.net"
    shared = {"adls.endpoint": url, "adls.auth.shared-key.account.name": ACCOUNT, "adls.auth.shared-key.account.key": ACCOUNT_KEY}
    connection = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};BlobEndpoint={url};AccountKey="
    wrong = base64.b64encode(b"another key").decode()
    for works, properties in ((True, {"adls.endpoint": url, f"adls.sas-token.{ACCOUNT}": token}),
                              (True, {f"adls.connection-string.{ACCOUNT}.dfs.core.windows.net": connection + ACCOUNT_KEY}),
                              (False, {**shared, "adls.auth.shared-key.account.key": wrong}),
                              (False, {f"adls.connection-string.{ACCOUNT}": connection + wrong}),
                              (False, {"adls.endpoint": url, f"adls.sas-token.{ACCOUNT}": token.replace("sig=", "sig=x")}),
                              (False, {"adls.endpoint": url, "adls.anonymous": "true"})):
        ls = subprocess.run([a.icefs, "ls", "--cache-dir", "", "--timeout", "10s", "--properties-file", save(work, properties), source + "/wh"], capture_output=True, text=True)
        told = [v for v in (wrong, ACCOUNT_KEY, token, urllib.parse.parse_qs(token)["sig"][0]) if v in ls.stdout + ls.stderr]
        if works != ("sales" in ls.stdout) or works == bool(ls.returncode) or told:
            raise SystemExit(f"logged in by {sorted(properties)}, expected to {'work' if works else 'fail'}: exit {ls.returncode}, {'a secret is told' if told else ls.stdout + ls.stderr}")
    return source, shared


def save(work, properties):
    """writes a properties file that its owner alone can read"""
    path = work + "/properties"
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as f:
        f.writelines(f"{k}={v}\n" for k, v in properties.items())
    return path


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("icefs", "tables", "judge", "store", "server"):
        ap.add_argument("--" + name, required=True)
    ap.add_argument("--only", default="*")
    a = ap.parse_args()
    for name in ("icefs", "tables", "judge", "server"):
        setattr(a, name, os.path.abspath(getattr(a, name)))
    work, servers, failed = tempfile.mkdtemp(prefix="icefs-bucket-"), Servers(), False
    try:
        folders = collect(a, work)
        if not folders:
            raise SystemExit("no table of that name")
        source, properties = {"s3": s3, "gcs": gcs, "azure": azure}[a.store](a, work, servers)
        for folder, names in sorted(folders.items()):
            log = work + "/log"
            judged = subprocess.run([sys.executable, a.judge, "--icefs", a.icefs, "--tables", a.tables, "--source", f"{source}/{folder}", "--only", ",".join(names),
                                     "--mount-args", f"--properties-file {save(work, properties)} --log-file {log}"])
            print(f"{a.store}: {source}/{folder}: {len(names)} tables, judge exit {judged.returncode}", flush=True)
            failed |= judged.returncode != 0
            with open(log) as f:
                text = f.read()
            if any(v in text for v in (SECRET, ACCOUNT_KEY)):
                raise SystemExit("a secret is in the log")
    finally:
        servers.stop()
        shutil.rmtree(work, ignore_errors=True)
    return failed


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers are stopped
    sys.exit(main())
