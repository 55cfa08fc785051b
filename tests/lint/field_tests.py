#!/usr/bin/env python3
"""Checks that every field of a job's spec is set in a test: field_tests.py

A field that no test sets may do nothing, and nobody would see. Each leaf below spec in
crds/heterotrain.io_heterotrainingjobs.yaml must be named, with its colon or path, in a file of
tests/controller or tests/e2e/run: 'maxGPUs': or .maxGPUs; a name that several
fields have must stand within WINDOW characters behind that of its parent. Files that only
look at schemas (tests/e2e/crd-cases) do not count. podTemplate is passed on as a whole.
"""
import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRD = ROOT / "crds/heterotrain.io_heterotrainingjobs.yaml"
WINDOW = 400
PASSED_ON = {"podTemplate"}


def leaves(schema, path=()):
    if path and path[-1] in PASSED_ON:
        yield path
        return
    if schema.get("type") == "array":
        schema = schema["items"]
    if "properties" not in schema:
        yield path
        return
    for name, child in schema["properties"].items():
        yield from leaves(child, path + (name,))


def spec_schema():
    crd = yaml.safe_load(CRD.read_text())
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def named(name):
    return rf"""(?:\.{name}\b|['"]{name}['"]\s*:|\b{name}\s*:)"""


def main():
    files = [*sorted((ROOT / "tests/controller").rglob("*.c")), ROOT / "tests/e2e/run"]
    # Strings of C are joined where they are broken.
    text = "\n".join(re.sub(r'"\s*\n\s*"', "", file.read_text()) for file in files)
    fields = list(leaves(spec_schema()))
    names = [path[-1] for path in fields]
    missing = []
    for path in fields:
        pattern = named(path[-1])
        if names.count(path[-1]) > 1 and len(path) > 1:
            pattern = rf"(?s){named(path[-2])}.{{0,{WINDOW}}}?{pattern}"
        if not re.search(pattern, text):
            missing.append(path)
    for path in missing:
        print(f"{CRD.name}: spec.{'.'.join(path)}: no test sets it", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
