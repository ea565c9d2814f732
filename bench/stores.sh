#!/usr/bin/env bash
# Serves tables from a real S3 store on this machine, versitygw over a folder, and
# has them judged through a mount: as they are, and with one request in a hundred
# failing, where a file may fail but never show wrong rows.
#
#   bench/stores.sh ICEFS [SHARED]
#
# With SHARED (judge/ and tables/) the judge compares the recorded rows; without,
# icefs verify compares with a naive merge, on the tables of testdata.
set -euo pipefail
cd "$(dirname "$0")/.."
icefs=$(realpath "$1")
shared=${2:-}
gateway=${VERSITYGW:-$PWD/.venv/bin/versitygw}
work=$(mktemp -d)
pids=()
finish() {
	mountpoint -q "$work/mnt" && { "$icefs" umount "$work/mnt" || umount -l "$work/mnt"; }
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
	wait
	rm -rf "$work"
}
trap finish EXIT

tables=testdata
[ -d "$shared/tables/object-store" ] && tables=$shared/tables
mkdir -p "$work/mnt"
cp -r "$tables/object-store" "$work/root"
export AWS_ACCESS_KEY_ID=stores AWS_SECRET_ACCESS_KEY=$RANDOM$RANDOM$RANDOM AWS_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true
port=$((20000 + RANDOM % 10000))
ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY \
	"$gateway" --port "127.0.0.1:$port" --quiet posix --nometa "$work/root" >"$work/gateway.log" 2>&1 &
pids+=($!)
go build -o "$work/front" ./bench/front
"$work/front" -to "http://127.0.0.1:$port" -listen "127.0.0.1:$((port + 1))" -rate 0.01 &
pids+=($!)
for _ in $(seq 100); do
	"$icefs" ls --cache-dir '' --timeout 1s --s3-endpoint "http://127.0.0.1:$port" s3://icefs-bucket/wh >/dev/null 2>&1 && break
	sleep 0.1
done

if [ -d "$shared/judge" ] && [ "$tables" != testdata ]; then
	${PYTHON:-python3} "$shared/judge/judge.py" --icefs "$icefs" --tables "$tables" --only s3_v2 --passes 2 \
		--source s3://icefs-bucket/wh --mount-args "--s3-endpoint http://127.0.0.1:$port"
else
	"$icefs" verify --cache-dir '' --s3-endpoint "http://127.0.0.1:$port" s3://icefs-bucket/wh
fi

# Flaky: all bytes of all snapshots are those of the sound store, or an errno.
whole() { # PORT: a checksum of each file, or nothing where it fails
	"$icefs" mount --daemon --cache-dir '' --log-level error --log-file "$work/log" --s3-endpoint "http://127.0.0.1:$1" s3://icefs-bucket/wh "$work/mnt"
	(cd "$work/mnt" && find . -path ./.icefs -prune -o -type f -print | sort | while read -r f; do
		sum=$(sha256sum "$f" 2>/dev/null) && echo "$sum" || true
	done)
	"$icefs" umount "$work/mnt"
}
whole "$port" >"$work/sound"
whole "$((port + 1))" >"$work/flaky"
sort -o "$work/sound" "$work/sound"
wrong=$(sort "$work/flaky" | comm -13 "$work/sound" - | wc -l)
echo "flaky store: $(wc -l <"$work/flaky") of $(wc -l <"$work/sound") files read, $wrong of them wrong"
[ "$wrong" -eq 0 ] && [ -s "$work/flaky" ]
if grep -q "$AWS_SECRET_ACCESS_KEY" "$work/log"; then echo "a secret is in the log"; exit 1; fi
