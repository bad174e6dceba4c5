#!/usr/bin/env bash
# Static analysis of the project's own .cpp files with clang-tidy; .clang-tidy lists the checks. Any finding is an error.
#
# usage: scripts/lint.sh [FILE...]      (default: every .cpp file of src in the release build)
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_dependencies.sh build test check
cmake --preset release --log-level=WARNING

files=("$@")
if [ ${#files[@]} -eq 0 ]; then
  mapfile -t files < <(sed -nE 's/^ *"file": "(.*)",?$/\1/p' build/release/compile_commands.json | grep "^$PWD/src/" | sort -u)
fi
printf '%s\n' "lint: clang-tidy on ${#files[@]} files" >&2
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy-14 --quiet --warnings-as-errors='*' -p build/release 2> build/lint.log ||
  {
    grep -v ' warnings generated\.$\|^Suppressed ' build/lint.log >&2 || true
    exit 1
  }
printf '%s\n' "lint: nothing found" >&2
