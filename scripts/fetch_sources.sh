#!/usr/bin/env bash
# Downloads the source packages that are not in the distribution, checked by hash. What is there already stays.
#
# usage: scripts/fetch_sources.sh [FOLDER]    (~/.cache/thalweg unless given)
set -euo pipefail
folder=${1:-$HOME/.cache/thalweg}
[ -f "$folder/xgrammar-0.2.8.tar.gz" ] && exit 0
mkdir -p "$folder"
work=$(mktemp -d "$folder/fetch-XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "xgrammar==0.2.8 --hash=sha256:8305646fd2b319d6c3003f51a1665e54cbbe9cba1fb636bc41d0b46434ccbb80" > "$work/list"
# Only this package from source: what is needed to look into it may come built.
python3 -m pip download -q --no-deps --no-binary xgrammar --require-hashes -d "$work" -r "$work/list" >&2
mv "$work/xgrammar-0.2.8.tar.gz" "$folder/"
