"""`kaiwa show`: what a model is, and which engine runs it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaiwa.errors import KaiwaError, ModelNotFound

if TYPE_CHECKING:
    from kaiwa.weights.description import Description
    from kaiwa.weights.inventory import Model

SUMMARY = "Say what a model is: family, numbers, licence, template, engine, memory."


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument("model", metavar="MODEL", help="a name that `kaiwa models` lists, or a path")
    parser.add_argument("--template", action="store_true", help="print the chat template and nothing else")
    parser.add_argument("--json", action="store_true", help="print JSON, template included")


def run(arguments: argparse.Namespace) -> int:
    """Print it. Nothing is fetched."""
    from kaiwa.weights.description import describe

    path, model = _find(arguments.model)
    description = describe(path)
    template = _template(path, description)
    if arguments.template:
        print(template)
    elif arguments.json:
        print(json.dumps(_to_dict(path, model, description, template), ensure_ascii=False, indent=2))
    else:
        print("\n".join(_lines(path, model, description, template)))
    return 0


def _find(name: str) -> tuple[Path, Model | None]:
    from kaiwa.weights import file_kinds, hub, inventory

    path = Path(name).expanduser()
    if file_kinds.exists(path):
        return path, None
    hub.check(name)
    try:
        model = inventory.find(name)
    except ModelNotFound as error:
        raise ModelNotFound(str(error), hint=f"{error.hint}; `kaiwa pull {name}` would fetch it") from error
    return model.path, model


def _template(path: Path, description: Description) -> str:
    """The chat template's source, or "" where there is none or the tokenizer is of a kind that Kaiwa does not read."""
    from kaiwa.text.tokens.tokenizer import Tokenizer
    from kaiwa.weights import gguf, gguf_files

    if description.kind == "GGUF":
        return str(gguf.read_metadata(gguf_files.find(path) or path).get("tokenizer.chat_template", ""))
    try:
        return Tokenizer.from_folder(path).chat_template or ""
    except KaiwaError:
        return ""


def _to_dict(path: Path, model: Model | None, description: Description, template: str) -> dict[str, Any]:
    from dataclasses import asdict

    from kaiwa.runtime.loading import engine_choice

    engine = engine_choice.choose(description)
    return {
        "path": str(path),
        **({"name": model.name, "licence": model.licence, "source": model.source} if model else {}),
        **asdict(description),
        "engine": engine.name,
        "engine_is_installed": engine.is_installed,
        **({"memory": _memory(path)} if engine is engine_choice.NATIVE else {}),
        "template": template,
    }


def _memory(path: Path) -> dict[str, int | str]:
    """What the model takes with the context that it would have now, or why it does not fit."""
    from kaiwa.errors import OutOfMemory
    from kaiwa.runtime.loading.loader import plan_of

    try:
        plan = plan_of(path)
    except OutOfMemory as error:
        return {"problem": str(error)}
    return {
        "weights_bytes": plan.weights_bytes,
        "cache_bytes": plan.cache_bytes * plan.context_length // plan.cache_tokens,
        "context_length": plan.context_length,
    }


def _memory_words(memory: Mapping[str, Any]) -> str:
    from kaiwa.terminal import words

    if "problem" in memory:
        return f"does not fit now: {memory['problem']}"
    weights, cache = words.in_bytes(memory["weights_bytes"]), words.in_bytes(memory["cache_bytes"])
    return f"{weights} weights + {cache} cache when a context of {memory['context_length']:,} tokens is full"


def _lines(path: Path, model: Model | None, description: Description, template: str) -> list[str]:
    from kaiwa.runtime.loading import engine_choice
    from kaiwa.terminal import words
    from kaiwa.terminal.table import aligned

    engine = engine_choice.choose(description)
    missing = "" if engine.is_installed else f" (not installed: pip install 'kaiwa[{engine.extra}]')"
    numbers = [description.number_format]
    if description.num_parameters:
        numbers.insert(0, f"{words.in_parameters(description.num_parameters)} parameters")
    rows = [
        ("name", " = ".join(model.names) if model else path.name),
        ("path", str(path)),
        ("source", model.source if model else ""),
        ("licence", model.licence if model else ""),
        ("size", words.in_bytes(model.num_bytes if model else _num_bytes(path))),
        ("kind", description.kind),
        ("family", description.family),
        ("numbers", ", ".join(filter(None, numbers))),
        ("context", f"{description.context_length:,} tokens" if description.context_length else ""),
        (
            "template",
            f"{len(template):,} characters (see --template)" if template else "none, so it cannot converse",
        ),
        ("engine", f"{engine.name}{missing}"),
        ("memory", _memory_words(_memory(path)) if engine is engine_choice.NATIVE else ""),
        ("", description.problem),
    ]
    shown = [(name, value) for name, value in rows if value]
    return aligned([[name for name, _ in shown], [value for _, value in shown]], left=(0, 1))


def _num_bytes(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
