#!/usr/bin/env python3
"""Checks /openapi.json of a running service with other people's tools.

usage: check_openapi.py URL

1. openapi-spec-validator: it is a valid OpenAPI 3.1 document.
2. jsonschema on the recorded requests of tests/data/api: what the document refuses, the service refuses.
   The reverse does not hold: rules between members (a result for every call, say) are no matter of a schema;
   how often the service refuses what the document lets through is printed.
"""

import json
import pathlib
import sys
import urllib.error
import urllib.request

import jsonschema
from openapi_spec_validator import validate

DATA = pathlib.Path(__file__).parents[2] / "tests/data/api"
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
LIMITS = {"chat": "max_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}


def fetch(url, body=None):
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def recorded_requests():
    rendered = json.loads((DATA / "render.json").read_text())
    refused = json.loads((DATA / "requests.json").read_text())["rejected"]
    for case in rendered["cases"] + rendered["extensions"] + refused:
        request = dict(case["request"])
        request.pop("stream", None)
        request.pop("stream_options", None)
        request.setdefault(LIMITS[case["api"]], 1)  # one token is enough to see that it is accepted
        yield case["name"], case["api"], request


def main():
    base = sys.argv[1].rstrip("/")
    document = json.loads(fetch(base + "/openapi.json")[1])
    validate(document)
    print(f"valid OpenAPI {document['openapi']}: {len(document['paths'])} paths, "
          f"{len(document['components']['schemas'])} schemas")
    checked, refused_by_rules, faults = 0, [], []
    for name, api, request in recorded_requests():
        operation = document["paths"][PATHS[api]]["post"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"] | {
            "components": document["components"]}
        valid = jsonschema.Draft202012Validator(schema).is_valid(request)
        status, reply = fetch(base + PATHS[api], json.dumps(request).encode())
        checked += 1
        if not valid and status != 400:
            faults.append(f"{name}: the document refuses it, the service answers {status}")
        if valid and status != 200:
            refused_by_rules.append(f"{name}: {json.loads(reply)['error']['message'][:90]}")
    print(f"{checked} recorded requests; {len(refused_by_rules)} pass the document and break a rule beyond it:")
    for line in refused_by_rules:
        print("  " + line)
    for fault in faults:
        print("FAULT " + fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
