#!/usr/bin/env bash
# Installs the packages Thalweg is built from. Quick when they are there already: then apt is not called at all.
#
# usage: scripts/install_dependencies.sh [GROUP...]
#   build   compiler, build tools and libraries of the `thalweg` program (the default)
#   test    what the tests need on top
#   check   what formatting, static analysis and fuzzing need on top
set -euo pipefail

declare -A groups=(
  [build]="g++ cmake ninja-build ccache mold libfmt-dev nlohmann-json3-dev libcli11-dev libhwy-dev libutf8proc-dev
           libxxhash-dev python3-pip %boost%"
  [test]="libgtest-dev libgmock-dev librapidcheck-dev libzstd-dev"
  # Layout must not change with the distribution, so formatter and analyser are asked for by version.
  [check]="clang clang-format-14 clang-tidy-14 %clang_runtime%"
)

say() { printf '%s\n' "install: $*" >&2; }
fail() {
  say "$@"
  exit 1
}

distribution() {
  local ID="" VERSION_ID=""
  # shellcheck source=/dev/null
  [ -r /etc/os-release ] && . /etc/os-release
  echo "${ID:-unknown} ${VERSION_ID:-}"
}

case "$(distribution)" in
  "debian 12")
    clang_runtime=libclang-rt-14-dev
    boost=libboost1.81-dev
    ;;
  "ubuntu 24.04")
    clang_runtime=libclang-rt-18-dev
    boost=libboost1.83-dev
    say "Ubuntu 24.04: package names are known, but the project is tested on Debian 12 only."
    ;;
  *)
    clang_runtime=libclang-rt-14-dev
    boost=libboost1.81-dev
    say "$(distribution): not a system this script knows; trying the package names of Debian 12."
    ;;
esac

wanted=()
for group in "${@:-build}"; do
  [ -n "${groups[$group]:-}" ] || fail "no group '$group' (build, test or check)"
  packages=${groups[$group]//%clang_runtime%/$clang_runtime}
  # shellcheck disable=SC2206  # the lists are meant to be split into words
  wanted+=(${packages//%boost%/$boost})
done

command -v dpkg-query > /dev/null ||
  fail "only systems with apt are handled. Install by hand what corresponds to: ${wanted[*]}"

installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2> /dev/null | sed -n 's/^installed //p' || true)
missing=()
for package in "${wanted[@]}"; do
  grep -qxF -- "$package" <<< "$installed" || missing+=("$package")
done
fetch_sources() { "$(dirname "$0")/fetch_sources.sh" || fail "source packages could not be downloaded from PyPI"; }
if [ ${#missing[@]} -eq 0 ]; then
  fetch_sources
  exit 0
fi

as_root=(env)
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo > /dev/null ||
    fail "these packages are missing and there is neither root nor sudo. As root: apt-get install --no-install-recommends ${missing[*]}"
  sudo true || fail "sudo refused; as root: apt-get install --no-install-recommends ${missing[*]}"
  as_root=(sudo env)
fi
apt_get() {
  # Another apt may be at work (unattended upgrades on a fresh machine): wait for its locks.
  "${as_root[@]}" DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
    apt-get -q -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@" < /dev/null
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt_messages() { grep -E '^(E|W):' "$log" | head -n 5 >&2; }
# apt waits by itself for the lock of dpkg, not for the one of the package lists.
update_lists() {
  for _ in $(seq 60); do
    apt_get update > "$log" 2>&1 || true
    grep -q 'Could not get lock' "$log" || return 0
    say "another apt is running; waiting"
    sleep 10
  done
}

say "missing: ${missing[*]}"
say "reading the package lists"
update_lists
apt_messages || true
say "installing ${#missing[@]} packages and what they depend on; this can take some minutes"
if ! apt_get install -y --no-install-recommends "${missing[@]}" > "$log" 2>&1; then
  apt_messages || tail -n 20 "$log" >&2
  fail "apt could not install the packages. Is there a network, and do the package sources reach it? (The messages of apt stand above.)"
fi
fetch_sources
say "done"
