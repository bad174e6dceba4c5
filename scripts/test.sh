#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test. The second time only what changed is built.
#
# usage: scripts/test.sh [PRESET [REGEX]]
#   PRESET   release (the default), asan (Address- and UndefinedBehaviorSanitizer, clang) or tsan (ThreadSanitizer)
#   REGEX    only the test programs whose room matches are built and run, e.g. 'base|engine'
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-release}
rooms=${2:-.*}
jobs=$(nproc)
say() { printf '%s\n' "test: $*" >&2; }
case "$preset" in
  release | asan | tsan) ;;
  *)
    say "no preset '$preset' (release, asan or tsan)"
    exit 2
    ;;
esac

groups=(build test)
[ "$preset" = asan ] && groups+=(check)
scripts/install_dependencies.sh "${groups[@]}"

say "building with preset $preset on $jobs cores"
cmake --preset "$preset" -DTHALWEG_TESTS=ON --log-level=WARNING
if [ "$rooms" = ".*" ]; then
  targets=(all)
else
  mapfile -t targets < <(ninja -C "build/$preset" -t targets all | sed -nE "s/^(test_($rooms)): phony$/\1/p")
  [ ${#targets[@]} -gt 0 ] || {
    say "no room of tests/ matches '$rooms'"
    exit 2
  }
fi
ninja -C "build/$preset" -j "$jobs" "${targets[@]}"

say "running the tests"
log=build/$preset/test.log
status=0
ctest --test-dir "build/$preset" -j "$jobs" --output-on-failure --no-tests=error --timeout 900 \
  -R "^($rooms)\." | tee "$log" || status=$?

# What ctest calls "not run" are the tests that said why they were skipped, mostly for lack of golden data.
skipped=$(sed -nE 's/^.*Test +#[0-9]+: ([^ ]+) \.*\*+Skipped.*$/\1/p' "$log")
if [ -n "$skipped" ]; then
  say "skipped $(wc -l <<< "$skipped") tests, since data they need is not part of the repository:"
  printf '%s\n' "  ${skipped//$'\n'/$'\n'  }" >&2
fi
exit "$status"
