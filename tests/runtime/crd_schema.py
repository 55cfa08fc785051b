"""Whether an object has the structure that a CRD's schema asks for: types, bounds, enums,
patterns, required and unknown fields, keys of lists. Rules in CEL are not run."""
import pathlib
import re

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def load(plural):
    text = (ROOT / f"crds/heterotrain.io_{plural}.yaml").read_text()
    return yaml.safe_load(text)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def _object(schema, value, where):
    properties = schema.get("properties")
    if properties is None:
        return
    for name in schema.get("required", []):
        if name not in value:
            yield f"{where}.{name}: is missing"
    for name, item in value.items():
        if name not in properties:
            yield f"{where}.{name}: is no field"
        else:
            yield from complaints(properties[name], item, f"{where}.{name}")


def _array(schema, value, where):
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield f"{where}: has {len(value)} items"
    keys = schema.get("x-kubernetes-list-map-keys")
    if keys and len({tuple(item[key] for key in keys) for item in value}) != len(value):
        yield f"{where}: two items have the same {keys}"
    for i, item in enumerate(value):
        yield from complaints(schema["items"], item, f"{where}[{i}]")


def _type(schema):
    """(name, Python's types) of what a field may be."""
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string", (int, str)
    return schema["type"], TYPES[schema["type"]]


def complaints(schema, value, where=""):
    """What is wrong, a line each."""
    name, types = _type(schema)
    if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
        yield f"{where}: {value!r} is no {name}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is not one of {schema['enum']}"
    if isinstance(value, str):
        if (
            not schema.get("minLength", 0)
            <= len(value)
            <= schema.get("maxLength", len(value))
        ):
            yield f"{where}: is {len(value)} characters long"
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{where}: {value!r} does not match {schema['pattern']}"
    elif isinstance(value, (int, float)):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"{where}: {value} is out of bounds"
    elif isinstance(value, dict):
        yield from _object(schema, value, where)
    else:
        yield from _array(schema, value, where)
