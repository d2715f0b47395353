"""The reference of the HTTP service, from its OpenAPI schema."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from recsys import load_dataset, make_ranker
from recsys.rankers import fit_package
from recsys.service import create_app

START = """# HTTP service

Written from the OpenAPI schema of `recsys serve`, which the running service gives itself at
`/openapi.json`, and as pages to try at `/docs`. How to run it: [](../howto/serve.md).
"""


def schema() -> dict[str, Any]:
    """Return the OpenAPI schema of a service over a small model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.recsys")
        fit_package(make_ranker("popularity"), load_dataset("sample")).save(path)
        return create_app(path, token="one").openapi()


def kind(described: dict[str, Any]) -> str:
    """Return the type of a field in words."""
    if "$ref" in described:
        name = described["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in described:
        return " or ".join(kind(part) for part in described["anyOf"])
    if described.get("type") == "array":
        return f"list of {kind(described.get('items', {}))}"
    if "const" in described:
        return f"`{json.dumps(described['const'])}`"
    if "enum" in described:
        return " or ".join(f"`{json.dumps(value)}`" for value in described["enum"])
    return str(described.get("type", "anything"))


LIMITS = {
    "minimum": "≥", "maximum": "≤", "exclusiveMinimum": ">", "exclusiveMaximum": "<",
    "minLength": "at least so many characters:", "maxLength": "at most so many characters:",
    "minItems": "at least so many:", "maxItems": "at most so many:",
}  # fmt: skip


def limits(described: dict[str, Any]) -> str:
    """Return what a field must keep to."""
    parts = [described, *described.get("anyOf", [])]
    return "; ".join(
        f"{sign} {part[key]}" for part in parts for key, sign in LIMITS.items() if key in part
    )


def fields(name: str, described: dict[str, Any]) -> str:
    """Return the table of a request's or a response's fields."""
    lines = [f"### {name}", "", (described.get("description") or "").strip().split("\n\n")[0], ""]
    required = set(described.get("required", ()))
    if described.get("properties"):
        lines += ["| field | type | limits | default | |", "|---|---|---|---|---|"]
    for field, what in described.get("properties", {}).items():
        default = "required" if field in required else f"`{json.dumps(what.get('default'))}`"
        told = " ".join((what.get("description") or "").split()).replace("|", "\\|")
        lines.append(f"| `{field}` | {kind(what)} | {limits(what)} | {default} | {told} |")
    return "\n".join([*lines, ""])


def write(file: Path) -> None:
    """Write the page."""
    found = schema()
    lines = [START]
    lines += ["## Routes", "", "| route | what | body | answers |", "|---|---|---|---|"]
    for path, methods in found["paths"].items():
        for method, route in methods.items():
            told = " ".join((route.get("description") or route.get("summary", "")).split())
            content = route.get("requestBody", {}).get("content", {})
            body = ", ".join(kind(part["schema"]) for part in content.values())
            answers = []
            for code, answer in sorted(route["responses"].items()):
                made = [
                    kind(part["schema"])
                    for part in answer.get("content", {}).values()
                    if part.get("schema")
                ]
                answers.append(" ".join([code, *(m for m in made if m != "anything")]))
            lines.append(f"| `{method.upper()} {path}` | {told} | {body} | {', '.join(answers)} |")
    lines += ["", "What stands in braces is to be filled in.", "", "## Bodies", ""]
    for name, described in found["components"]["schemas"].items():
        lines.append(fields(name, described))
    file.write_text("\n".join(lines), encoding="utf-8")
