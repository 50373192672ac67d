"""The server's own description: an OpenAPI document made of the table of endpoints, and a page that shows it.

The page needs no script and nothing from elsewhere.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from kaiwa import __version__
from kaiwa.server.described import Described
from kaiwa.server.endpoint import EVENTS, JSON, Endpoint
from kaiwa.server.errors import ANTHROPIC_PATHS

_EVERYWHERE = (401, 403, 500)
_WITH_A_BODY = (400, 408, 413, 415)
_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}
code{font-family:ui-monospace,monospace}th,td{text-align:left;padding:.2rem .8rem .2rem 0;vertical-align:top}
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8cf}}"""


class ErrorObject(Described):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorBody(Described):
    """What is sent instead of an answer."""

    error: ErrorObject


class AnthropicErrorObject(Described):
    """What went wrong."""

    type: str
    message: str


class AnthropicErrorBody(Described):
    """What is sent instead of an answer, in the words of Anthropic's API."""

    type: Literal["error"]
    error: AnthropicErrorObject


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    schemas = _schemas(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        path = _PARAMETER.sub(r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Kaiwa", "version": __version__, "description": "Language models on this machine."},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{"key": []}, {}],
    }


def _schemas(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    taken = {(endpoint.takes, "validation") for endpoint in endpoints if endpoint.takes is not None}
    given = {(endpoint.gives, "serialization") for endpoint in endpoints if not isinstance(endpoint.gives, str)}
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(ErrorBody, "serialization")]
    models += [(AnthropicErrorBody, "serialization"), *sorted(taken | given, key=lambda pair: pair[0].__name__)]  # type: ignore[list-item]
    _, definitions = models_json_schema(models, ref_template="#/components/schemas/{model}")
    schemas: dict[str, Any] = definitions["$defs"]
    return schemas


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {"summary": endpoint.summary, "responses": _responses(endpoint)}
    if names := _PARAMETER.findall(endpoint.path):
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
            for name in names
        ]
    if endpoint.takes is not None:
        operation["requestBody"] = {"required": True, "content": _content([(JSON, endpoint.takes)])}
    return operation


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    gives = endpoint.gives
    kinds: list[tuple[str, type[BaseModel] | None]] = [(gives, None) if isinstance(gives, str) else (JSON, gives)]
    if endpoint.streams:
        kinds.append((EVENTS, None))
    refusal = AnthropicErrorBody if endpoint.path.startswith(ANTHROPIC_PATHS) else ErrorBody
    statuses = {*_EVERYWHERE, *endpoint.statuses, *(_WITH_A_BODY if endpoint.takes else ())}
    responses = {"200": {"description": "OK", "content": _content(kinds)}}
    for status in sorted(statuses):
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": _content([(JSON, refusal)])}
    return responses


def _content(kinds: Iterable[tuple[str, type[BaseModel] | None]]) -> dict[str, Any]:
    return {kind: {"schema": _schema(kind, model)} for kind, model in kinds}


def _schema(kind: str, model: type[BaseModel] | None) -> dict[str, Any]:
    if model is not None:
        return {"$ref": f"#/components/schemas/{model.__name__}"}
    if kind == EVENTS:  # each of them
        return {"type": "object", "properties": {"event": {"type": "string"}, "data": {"type": "string"}}}
    return {"type": "string"}


def page(endpoints: Sequence[Endpoint]) -> str:
    """The document for people."""
    schemas = _schemas(endpoints)
    parts = [_section(endpoint, schemas) for endpoint in endpoints]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Kaiwa {__version__}</title><style>{_STYLE}</style></head>
<body><h1>Kaiwa {__version__}</h1>
<p>What this server answers. Programs read <a href="/openapi.json">/openapi.json</a>.</p>
{"".join(parts)}</body></html>
"""


def _section(endpoint: Endpoint, schemas: dict[str, Any]) -> str:
    path = _PARAMETER.sub(r"{\1}", endpoint.path)
    title = f"<h2><code>{endpoint.method} {html.escape(path)}</code></h2><p>{html.escape(endpoint.summary)}</p>"
    if endpoint.takes is None:
        return title
    schema = schemas[endpoint.takes.__name__]
    required = schema.get("required", ())
    rows = "".join(
        f"<tr><td><code>{html.escape(name)}</code></td><td>{html.escape(_kind(field))}</td>"
        f"<td>{'required. ' if name in required else ''}{html.escape(field.get('description', ''))}</td></tr>"
        for name, field in schema["properties"].items()
    )
    return f"{title}<table>{rows}</table>"


def _kind(field: dict[str, Any]) -> str:
    """The type of a field in a few words."""
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_kind(one) for one in field["anyOf"] if one.get("type") != "null"))
    if "$ref" in field:
        return "object"
    if "enum" in field or "const" in field:
        return ", ".join(map(repr, field.get("enum", [field.get("const")])))
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {}))}"
    return str(field.get("type", "anything"))
