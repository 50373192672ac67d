"""Request bodies that say no: what is unknown, unsupported or of a wrong type is refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError, from_json

from kaiwa import sampling
from kaiwa.errors import did_you_mean
from kaiwa.server.errors import ApiError
from kaiwa.server.json_text import dumps

MAX_SHOWN = 60


class Strict(BaseModel):
    """An object of a request. A number in quotes is no number, and a field that has no effect is no field."""

    # Built when it is first needed, so that a server starts at once.
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    unsupported: ClassVar[Mapping[str, str]] = {}
    """Fields of the original API that this server cannot honour, and why; only null is taken."""

    @model_validator(mode="before")
    @classmethod
    def _refuse(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        known = {field.alias or name for name, field in cls.model_fields.items()}
        strange = fields.keys() - known
        if not strange:
            return fields
        for name in sorted(strange):
            if name not in cls.unsupported:
                short = name[:MAX_SHOWN]
                reason = f"there is no field {_shown(name)} here: {did_you_mean(short, known)}"
                raise PydanticCustomError("unknown_parameter", "{reason}", {"reason": reason, "name": short})
            if fields[name] is not None:
                reason = f"{name!r} is not supported: {cls.unsupported[name]}"
                raise PydanticCustomError("unsupported_parameter", "{reason}", {"reason": reason, "name": name})
        return {name: value for name, value in fields.items() if name not in strange}


def _whole(value: Any) -> Any:
    """JSON knows one kind of number, so that 5.0 is a whole one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""To be the last in the annotation of an integer: what stands before it is in the schema."""
S = TypeVar("S", bound=Strict)


def option(name: str) -> Any:
    """The bounds and the help of an option of sampling, for the annotation of a field."""
    row = sampling.find(name)
    bounds: dict[str, Any] = {}
    if row.minimum is not None:
        bounds["gt" if row.is_open else "ge"] = row.minimum
    if row.maximum is not None:
        bounds["le"] = row.maximum
    return Field(description=row.help, **bounds)


def parse(kind: type[S], raw: bytes, *, max_depth: int) -> S:
    """The body of a request. Raises `ApiError` that names the first field that is wrong."""
    try:
        value = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise ApiError(400, f"the body is not JSON: {error}", code="invalid_json") from None
    _check_depth(value, max_depth)
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False), value) from None


def _check_depth(value: Any, max_depth: int) -> None:
    level = [value]
    for _ in range(max_depth + 1):
        level = [
            child
            for item in level
            if isinstance(item, (dict, list))
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise ApiError(400, f"the body nests more than {max_depth} levels deep", code="invalid_json")


def _refusal(errors: Sequence[ErrorDetails], body: Any) -> ApiError:
    """What to say of a body that does not validate.

    Where a value may be one of several things, each has its complaint; the one that got deepest meant what it read.
    """
    error = max(errors, key=lambda error: (len(error["loc"]), not error["type"].endswith("_type")))
    context = error.get("ctx", {})
    path = _path(error["loc"], body, is_missing=error["type"] == "missing")
    if error["type"] in ("unknown_parameter", "unsupported_parameter"):
        return ApiError(400, error["msg"], code=error["type"], param=_joined([*path, context["name"]]))
    if "discriminator" in context:
        path.append(context["discriminator"].strip("'"))
    param = _joined(path)
    if error["type"] in ("missing", "union_tag_not_found"):
        return ApiError(400, f"{param} is missing", code="missing_required_parameter", param=param)
    words = error["msg"][0].lower() + error["msg"][1:]
    message = f"{param or 'the body'} is {_shown(context.get('tag', error['input']))}: {words}"
    return ApiError(
        400, message, code="invalid_type" if error["type"].endswith("_type") else "invalid_value", param=param
    )


def _path(loc: Sequence[str | int], body: Any, *, is_missing: bool) -> list[str | int]:
    """The part of pydantic's location that leads through the body; the rest names alternatives of its own."""
    path: list[str | int] = []
    here = body
    for number, step in enumerate(loc):
        if _has(here, step):
            here = here[step]
        elif not (is_missing and number == len(loc) - 1):
            continue
        path.append(step)
    return path


def _has(value: Any, step: str | int) -> bool:
    if isinstance(value, dict):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


def _joined(path: Sequence[str | int]) -> str | None:
    joined = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return joined.lstrip(".") or None


def _shown(value: object) -> str:
    shown = dumps(value)
    return shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"
