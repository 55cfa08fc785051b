#!/usr/bin/env python3
"""Checks crds/*.yaml and docs/api.md against each other.

    crd_bounds.py          every complaint on standard error, exit 1 if there is one
    crd_bounds.py --fix    first writes type, default and meaning into the rows of docs/api.md

A schema passes when each field has a description, each leaf a bound, each list a list type,
each default is valid, and docs/api.md has a row for the field: its type, default and
description as in the schema, and what the controller does with it. ModelProfile and
ClusterModelProfile must have one schema.
"""
import json
import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE_LIMIT_BYTES = 256 * 1024  # kubectl apply keeps a copy in an annotation of this size
# A section of docs/api.md, and the custom resource whose fields its tables list.
SECTIONS = {
    "## HeteroTrainingJob": "HeteroTrainingJob",
    "## ModelProfile and ClusterModelProfile": "ModelProfile",
}
# Kubernetes describes these itself, or does not let a CRD do it.
STANDARD = {"apiVersion", "kind", "metadata"}
# How the last cell of a row of the spec begins: what this release does with the field.
TREATMENTS = ("acted on", "rejected", "no effect yet")

complaints = []


def complain(where, what):
    complaints.append(f"{where}: {what}")


def is_leaf(schema):
    return schema.get("type") not in ("object", "array")


def check_bounds(where, schema):
    """A value of this schema cannot be arbitrarily large."""
    kind = schema.get("type")
    int_or_string = schema.get("x-kubernetes-int-or-string", False)
    if kind == "number":
        complain(where, "is a float: use an integer with a unit, or a string")
    elif kind == "array":
        if "maxItems" not in schema:
            complain(where, "is a list without maxItems")
        if "x-kubernetes-list-type" not in schema:
            complain(where, "is a list without x-kubernetes-list-type")
    elif kind == "object":
        if "additionalProperties" in schema and "maxProperties" not in schema:
            complain(where, "is a map without maxProperties")
        if not any(key in schema for key in ("properties", "additionalProperties")):
            complain(where, "is an object without fields")
    if kind == "integer" or int_or_string:
        for key in ("minimum", "maximum"):
            if key not in schema:
                complain(where, f"is a number without {key}")
    if kind == "string" and "enum" not in schema or int_or_string:
        if "maxLength" not in schema:
            complain(where, "is a string without maxLength")
    if kind is None and not int_or_string:
        complain(where, "has no type")


def check_value(where, schema, value):
    """The default `value` satisfies the plain parts of the schema."""
    if "enum" in schema and value not in schema["enum"]:
        complain(where, f"default {value!r} is not in the enumeration")
    if schema.get("type") == "integer" and not schema["minimum"] <= value <= schema["maximum"]:
        complain(where, f"default {value} is out of bounds")


def list_suffix(schema):
    return "[]" if schema.get("type") == "array" else "{}"


def walk(where, schema, required, visit):
    """Calls visit(path, schema, required) for each named field below `schema`."""
    for name, field in schema.get("properties", {}).items():
        path = f"{where}.{name}" if where else name
        if not where and name in STANDARD:
            continue
        visit(path, field, name in schema.get("required", []))
        inner = field.get("items") or field.get("additionalProperties")
        if inner:
            check_bounds(path + list_suffix(field), inner)
            walk(path + list_suffix(field), inner, required, visit)
        walk(path, field, required, visit)


def type_text(schema):
    """The second column of docs/api.md."""
    if "enum" in schema:
        return "enum " + ", ".join(schema["enum"])
    kind = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        return f"decimal {schema['minimum']}..{schema['maximum']}"
    if kind == "integer":
        maximum = "2^53" if schema["maximum"] == 2**53 else schema["maximum"]
        return f"{schema['format']} {schema['minimum']}..{maximum}"
    if kind == "string":
        if schema.get("format") == "date-time":
            return "time"
        return f"string of at most {schema['maxLength']}"
    if kind == "array":
        keys = schema.get("x-kubernetes-list-map-keys")
        key_text = " by " + ", ".join(keys) if keys else ""
        inner = schema["items"]
        inner_text = f" of {type_text(inner)}" if is_leaf(inner) else ""
        return f"list of at most {schema['maxItems']}{key_text}{inner_text}"
    if "additionalProperties" in schema:
        inner = schema["additionalProperties"]
        inner_text = "quantity" if inner.get("x-kubernetes-int-or-string") else type_text(inner)
        return f"map of at most {schema['maxProperties']} to {inner_text}"
    return kind


def default_text(schema, required):
    """The third column of docs/api.md."""
    default = schema.get("default")
    if required and default is None:
        return "required"
    if default is None or isinstance(default, dict):
        return ""
    return json.dumps(default) if isinstance(default, bool) else str(default)


def fields_of(crd_file, crd):
    """[(path, schema, required)] of one resource; complains about the schema on the way."""
    kind = crd["spec"]["names"]["kind"]
    fields = []

    def visit(path, schema, required):
        where = f"{crd_file.name}: {path}"
        if not schema.get("description", "").strip():
            complain(where, "has no description")
        elif not schema["description"].rstrip().endswith("."):
            complain(where, "has a description that does not end with a full stop")
        check_bounds(where, schema)
        if "default" in schema:
            check_value(where, schema, schema["default"])
        if path.startswith("spec") and is_leaf(schema) and "default" in schema:
            if "Default" not in schema["description"]:
                complain(where, "has a default that its description does not mention")
        if "|" in schema.get("description", ""):
            complain(where, "has a '|' in its description, which would break the table in docs/api.md")
        for rule in schema.get("x-kubernetes-validations", []):
            if "oldSelf" in rule["rule"] and "annot be changed" not in schema["description"]:
                complain(where, "cannot be changed, which its description should say")
            if not rule.get("message"):
                complain(where, f"has a rule without a message: {rule['rule']}")
        fields.append((path, schema, required))

    if len(crd["spec"]["versions"]) != 1:
        complain(crd_file.name, "has more than one version: this script knows one")
    version = crd["spec"]["versions"][0]
    if "status" not in version["subresources"]:
        complain(crd_file.name, "has no status subresource")
    walk("", version["schema"]["openAPIV3Schema"], True, visit)
    return kind, fields


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def row_cells(path, schema, required):
    """The cells of a field's row, but for the last."""
    default = default_text(schema, required)
    quoted = f"`{default}`" if default and default != "required" else default
    return [f"`{path}`", type_text(schema), quoted, " ".join(schema["description"].split())]


def rows_of(lines):
    """{(kind, path): line number from 0} of the tables in docs/api.md."""
    rows, kind = {}, None
    for number, line in enumerate(lines):
        if line.startswith("## "):
            kind = SECTIONS.get(line.strip())
        field = re.match(r"\| `((?:spec|status)[^`]*)` \|", line)
        if kind and field:
            if (kind, field[1]) in rows:
                complain(f"docs/api.md:{number + 1}", f"a second row for {field[1]} of {kind}")
            rows[kind, field[1]] = number
    return rows


def check_row(where, path, expected, cells):
    if len(cells) != 5:
        complain(where, f"{path} has {len(cells)} cells, not 5")
        return
    for want, have in zip(expected, cells):
        if want != have:
            complain(where, f"{path}: '{have}' should be '{want}' (crd_bounds.py --fix writes it)")
    if path.startswith("spec") and not cells[4].startswith(TREATMENTS):
        complain(where, f"{path}: the last cell should begin with one of {', '.join(TREATMENTS)}")


def main():
    resources, schemas = {}, {}
    for crd_file in sorted((ROOT / "crds").glob("*.yaml")):
        if crd_file.stat().st_size >= FILE_LIMIT_BYTES:
            complain(crd_file.name, "is too large for a plain kubectl apply")
        crd = yaml.safe_load(crd_file.read_text())
        kind, fields = fields_of(crd_file, crd)
        resources[kind] = fields
        schemas[kind] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    if schemas["ModelProfile"] != schemas["ClusterModelProfile"]:
        complain("crds", "ModelProfile and ClusterModelProfile have different schemas")

    lines = (ROOT / "docs" / "api.md").read_text().splitlines()
    rows = rows_of(lines)
    for kind in SECTIONS.values():
        for path, schema, required in resources[kind]:
            number = rows.pop((kind, path), None)
            if number is None:
                complain("docs/api.md", f"has no row for {path} of {kind}")
                continue
            expected = row_cells(path, schema, required)
            if "--fix" in sys.argv[1:]:
                lines[number] = "| " + " | ".join(expected + cells_of(lines[number])[4:5]) + " |"
            check_row(f"docs/api.md:{number + 1}", path, expected, cells_of(lines[number]))
    for (kind, path), number in rows.items():
        complain(f"docs/api.md:{number + 1}", f"{kind} has no field {path}")
    if "--fix" in sys.argv[1:]:
        (ROOT / "docs" / "api.md").write_text("\n".join(lines) + "\n")

    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
