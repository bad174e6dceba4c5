#!/usr/bin/env bash
# Lays out every C++ file of the project with clang-format. With --check nothing is written: files that differ are
# listed and the exit code is 1.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_dependencies.sh check
mode=(-i)
if [ "${1:-}" = --check ]; then mode=(--dry-run -Werror); fi
find src tests fuzz \( -name '*.cpp' -o -name '*.hpp' \) -print0 |
  xargs -0 -n 16 -P "$(nproc)" clang-format-14 "${mode[@]}"
