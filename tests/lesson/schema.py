"""Validates the part of JSON Schema that docs/lesson-events.schema.json uses."""

import json
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": (int, float), "integer": int}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "const", "enum", "oneOf", "required", "properties",
         "additionalProperties", "items", "minItems", "maxItems", "minimum", "maximum", "pattern"}


class Schema:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.root = json.load(file)

    def errors(self, value, schema=None, at="$"):
        """Returns the errors of the value as a list."""
        schema = self.root if schema is None else schema
        unknown = set(schema) - KNOWN
        if unknown:  # an unknown rule must not be ignored
            raise ValueError(f"the validator does not know {unknown}")
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            return self.errors(value, self.root["$defs"][name], at)

        wrong = []
        if "type" in schema:
            expected = TYPES[schema["type"]]
            if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
                return [f"{at}: {value!r} is not of type {schema['type']}"]
        if "const" in schema and value != schema["const"]:
            wrong.append(f"{at}: {value!r} is not {schema['const']!r}")
        if "enum" in schema and value not in schema["enum"]:
            wrong.append(f"{at}: {value!r} is none of {schema['enum']}")
        if "minimum" in schema and value < schema["minimum"]:
            wrong.append(f"{at}: {value} < {schema['minimum']}")
        if "maximum" in schema and value > schema["maximum"]:
            wrong.append(f"{at}: {value} > {schema['maximum']}")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            wrong.append(f"{at}: {value!r} does not match {schema['pattern']}")
        if "oneOf" in schema:
            results = [self.errors(value, one, at) for one in schema["oneOf"]]
            if sum(not result for result in results) != 1:
                wrong.append(f"{at}: not exactly one of: " + " | ".join("; ".join(r) or "holds" for r in results))
        if isinstance(value, dict):
            properties = schema.get("properties", {})
            wrong += [f"{at}: lacks {name}" for name in schema.get("required", []) if name not in value]
            if schema.get("additionalProperties") is False:
                wrong += [f"{at}: has {name}" for name in value if name not in properties]
            for name, one in properties.items():
                if name in value:
                    wrong += self.errors(value[name], one, f"{at}.{name}")
        if isinstance(value, list):
            if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
                wrong.append(f"{at}: {len(value)} items")
            for i, item in enumerate(value):
                wrong += self.errors(item, schema.get("items", {}), f"{at}[{i}]")
        return wrong
