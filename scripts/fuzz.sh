#!/usr/bin/env bash
# Builds every fuzz target (preset asan) and runs each for a while.
#
# usage: scripts/fuzz.sh [SECONDS [TARGET...]]      (default: 30 seconds each, all targets)
#
# fuzz/corpus/TARGET holds the seeds. What a run finds on top of them stays in build/asan/corpus/TARGET; an input that
# breaks a target is left in build/asan/found/ and belongs, made small, into a test.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-30}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then mapfile -t targets < <(find fuzz -maxdepth 1 -name '*.cpp' -printf '%f\n' | sed 's/\.cpp$//' | sort); fi

scripts/install_dependencies.sh build test check
printf '%s\n' "fuzz: building ${#targets[@]} targets" >&2
cmake --preset asan --log-level=WARNING
ninja -C build/asan "${targets[@]/#/fuzz_}"

mkdir -p build/asan/found
for target in "${targets[@]}"; do
  mkdir -p "build/asan/corpus/$target" "fuzz/corpus/$target"
  printf '%s\n' "fuzz: $target, $seconds s" >&2
  if ! "build/asan/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/asan/found/$target-" "build/asan/corpus/$target" "fuzz/corpus/$target" \
    > "build/asan/$target.log" 2>&1; then
    tail -n 60 "build/asan/$target.log" >&2
    printf '%s\n' "fuzz: $target failed; the input is in build/asan/found/" >&2
    exit 1
  fi
  sed -nE 's/^stat::(number_of_executed_units): +/  inputs tried: /p' "build/asan/$target.log" >&2
done
printf '%s\n' "fuzz: no target failed" >&2
