#!/usr/bin/env bash
# Starts the service with the bundled checkpoint and lets other people's clients loose on it: the OpenAI and Anthropic
# packages and LangChain (scripts/clients/tour.py), a validator of OpenAPI documents, and schemathesis. The Python
# packages are pinned and go into build/clients. docs/client_tour.txt is what it printed last.
#
# usage: scripts/client_tour.sh      (after a release build)
set -euo pipefail
cd "$(dirname "$0")/.."

bin=build/clients/bin
[ -x $bin/python ] || python3 -m venv build/clients
$bin/pip install --quiet --disable-pip-version-check -r scripts/clients/requirements.txt

log=build/clients/serve.log
build/release/src/app/thalweg serve --port 0 2> "$log" &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT
until grep -q ready "$log"; do
  kill -0 $server || {
    cat "$log" >&2
    exit 1
  }
  sleep 0.1
done
url=$(sed -n 's/.*listening on //p' "$log")

$bin/python scripts/clients/tour.py "$url"
$bin/python scripts/clients/check_openapi.py "$url"
# Rules between members (a result for every call) are no matter of a schema: that what the document lets through is
# accepted is left out. Everything else is checked: no 5xx, statuses and bodies as described, faults refused.
(cd build/clients && bin/schemathesis run "$url/openapi.json" --workers 1 --max-examples 20 --seed 1 --no-color \
  --exclude-checks positive_data_acceptance \
  --include-path-regex '^/(v1/(chat|responses|messages|completions|models)|tokenize|detokenize|health|ready|version|user)' \
  > schemathesis.log) || {
  tail -40 build/clients/schemathesis.log
  exit 1
}
grep -E 'generated|Tested:' build/clients/schemathesis.log | sed 's/^ */schemathesis: /'
