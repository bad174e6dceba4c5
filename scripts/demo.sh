#!/usr/bin/env bash
# Installs what is missing, builds the `thalweg` program and lets it write with the bundled checkpoint.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_dependencies.sh build

jobs=$(nproc)
printf '%s\n' "demo: building build/release/src/app/thalweg on $jobs cores (some minutes the first time)" >&2
# Tests stay in a build folder that has them already; a new one does without.
tests=()
[ -f build/release/CMakeCache.txt ] || tests=(-DTHALWEG_TESTS=OFF)
cmake --preset release "${tests[@]}" --log-level=WARNING > /dev/null
ninja -C build/release -j "$jobs" thalweg

ask() {
  printf '\n$ thalweg generate --temperature 0 --no-think --user "%s"\n' "$1" >&2
  build/release/src/app/thalweg generate --temperature 0 --no-think --user "$1"
}
ask "What is the capital of France?"
ask "Tell me a story."
