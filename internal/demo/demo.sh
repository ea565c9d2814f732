#!/usr/bin/env bash
# Makes the demo warehouse, mounts it, shows a few commands on it with their
# output, and unmounts. usage: demo.sh ICEFS [DIR]
set -euo pipefail
icefs=$(realpath "$1")
work=${2:-$(mktemp -d)}
warehouse=$work/warehouse
mnt=$work/mnt
mountpoint -q "$mnt" && "$icefs" umount "$mnt" # of a demo that was cut short
rm -rf "$warehouse"
mkdir -p "$warehouse" "$mnt"
export XDG_CACHE_HOME=$work/cache

"$icefs" demo "$warehouse" | sed -n 1,5p
"$icefs" mount --daemon "$warehouse" "$mnt"
trap 'cd /; "$icefs" umount "$mnt"' EXIT

cd "$mnt"
show() { # prints a command, then runs it
	printf '\n$ %s\n' "$*"
	bash -c "$*"
}
show ls shop shop/orders shop/orders/current/
show ls -l shop/orders/by-time
show head -3 shop/orders/current/data.csv
show "grep -c honey shop/orders/current/data.csv"
show wc -l 'shop/orders/by-time/*/data.csv'
show head -2 shop/orders/tags/monday/data.csv
show "diff shop/orders/by-time/2026-01-06T18-00*/data.csv shop/orders/by-time/2026-01-06T18-30*/data.csv | head -4"
show cat shop/stock/current/files.csv
show "ls -l shop/stock/current/ | awk '{print \$5, \$9}'"
if command -v duckdb >/dev/null; then
	show "duckdb -c \"SELECT count(*) AS visible FROM 'shop/stock/current/data.parquet'\""
	show "duckdb -c \"SELECT count(*) AS with_deleted_rows FROM '$warehouse/shop/stock/data/*.parquet'\""
fi
show cp -r shop/stock/current/ "$work/copy"
show "cmp shop/stock/current/data.parquet $work/copy/data.parquet && echo same bytes"
chmod -R u+w "$work/copy" && rm -rf "$work/copy" # cp keeps that folders are read-only
printf '\n$ icefs inspect %s shop/stock/current/data.parquet\n' "$warehouse"
"$icefs" inspect "$warehouse" shop/stock/current/data.parquet | head -14
