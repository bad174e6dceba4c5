#!/usr/bin/env bash
# Generates objects for random JSON schemas by random walks of their grammars and has them validated by Python's
# `jsonschema` (fetched from PyPI by hash into a folder of its own).
#
# usage: scripts/check_schema_texts.sh [COUNT]      (default: 1000; needs a release build, python3 and pip)
set -euo pipefail
cd "$(dirname "$0")/.."

count=${1:-1000}
program=build/release/tests/schema_texts
[ -x "$program" ] || { echo "$program is not there: ninja -C build/release schema_texts" >&2; exit 2; }

packages=$HOME/.cache/thalweg/jsonschema-4.26.0
if [ ! -d "$packages" ]; then
  requirements=$(mktemp)
  trap 'rm -f "$requirements"' EXIT
  # Wheels for CPython 3.11 and 3.12 on x86-64 Linux.
  cat > "$requirements" << 'END'
attrs==26.1.0 --hash=sha256:c647aa4a12dfbad9333ca4e71fe62ddc36f4e63b2d260a37a8b83d2f043ac309
jsonschema==4.26.0 --hash=sha256:d489f15263b8d200f8387e64b4c3a75f06629559fb73deb8fdfb525f2dab50ce
jsonschema_specifications==2025.9.1 --hash=sha256:98802fee3a11ee76ecaca44429fda8a41bff98b00a0f2838151b113f210cc6fe
referencing==0.37.0 --hash=sha256:381329a9f99628c9069361716891d34ad94af76e461dcb0335825aecc7692231
rpds_py==2026.9.1 --hash=sha256:136a1c3fe4402b7008bc81cb62ee538481795b61a7e83df88dff3b3f02b726ff --hash=sha256:addeda51556dac7c1a2f14cda62db8b621cd12afba3091d03a96c72932387eab
typing_extensions==4.16.0 --hash=sha256:481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8
END
  rm -rf "$packages.part"
  python3 -m pip install -q --root-user-action=ignore --only-binary=:all: --require-hashes --no-deps --target "$packages.part" -r "$requirements"
  mv "$packages.part" "$packages"
fi

"$program" "$count" | PYTHONPATH=$packages python3 -c '
import decimal, json, sys
from jsonschema import Draft202012Validator

def read(text):
    # Exact decimals: in binary 0.07 is no multiple of 0.01.
    return json.loads(text, parse_float=decimal.Decimal)

decimal.getcontext().prec = 100
checked = invalid = 0
for line in sys.stdin:
    case = json.loads(line)
    errors = list(Draft202012Validator(read(case["schema"])).iter_errors(read(case["text"])))
    checked += 1
    if errors:
        invalid += 1
        print("INVALID:", case["schema"], case["text"], errors[0].message, sep="\n  ")
print(f"{checked} texts checked, {invalid} invalid")
sys.exit(1 if invalid or not checked else 0)
'
