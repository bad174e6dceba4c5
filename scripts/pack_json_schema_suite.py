#!/usr/bin/env python3
"""Packs the draft 2020-12 cases of the JSON Schema test suite into tests/data/json_schema.

usage: scripts/pack_json_schema_suite.py

The suite comes with the source package of `jsonschema` (MIT), fetched from PyPI by its hash. Needs pip and zstd.
"""
import hashlib
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

VERSION = "4.26.0"
SHA256 = "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326"
TARGET = pathlib.Path(__file__).parent.parent / "tests/data/json_schema/draft2020-12.json.zst"


def fetch(folder: str) -> pathlib.Path:
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "jsonschema", "-d", folder,
                    f"jsonschema=={VERSION}"], check=True)
    archive = pathlib.Path(folder) / f"jsonschema-{VERSION}.tar.gz"
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        sys.exit(f"{archive.name}: expected sha256 {SHA256}, found {found}")
    return archive


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = f"jsonschema-{VERSION}/json/tests/draft2020-12/"
        files = {}
        with tarfile.open(fetch(folder)) as archive:
            for member in archive:
                if member.name.startswith(root) and member.name.endswith(".json"):
                    files[member.name[len(root):-len(".json")]] = json.load(archive.extractfile(member))
        suite = [{"file": name, "groups": files[name]} for name in sorted(files)]
        text = json.dumps(suite, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        TARGET.unlink(missing_ok=True)
        plain = pathlib.Path(folder) / "suite.json"
        plain.write_bytes(text)
        subprocess.run(["zstd", "-q", "-19", str(plain), "-o", str(TARGET)], check=True)
    groups = sum(len(file["groups"]) for file in suite)
    print(f"{TARGET}: {groups} groups, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
