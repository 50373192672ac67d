"""Tokenizers of Hugging Face checkpoints: a folder with `tokenizer.json` and what stands beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaiwa.errors import KaiwaError, UnsupportedFormat, UnusableFile
from kaiwa.text.tokens.special_tokens import SpecialToken, SpecialTokens, end_ids
from kaiwa.text.tokens.tokenizer_parts import TokenizerParts
from kaiwa.text.tokens.vocabulary import LibraryVocabulary

if TYPE_CHECKING:
    import tokenizers

_HINT = "download the checkpoint again"

SEALED = "\ufdd0"
"""Begins the pieces that ordinary text must not become, in vocabularies whose pieces cannot be left out."""


def load(folder: Path, generation_end_ids: Iterable[int]) -> TokenizerParts:
    """The tokenizer in `folder`. Raises `UnusableFile`, or `UnsupportedFormat` where there is no `tokenizer.json`."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise UnsupportedFormat(
            folder, "checkpoint", "it has no tokenizer.json", hint="save it with transformers' fast tokenizer first"
        )
    try:
        return _assemble(folder, _read_json(path), generation_end_ids)
    except KaiwaError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # what a file with other types in it leads to
        raise UnusableFile(path, "tokenizer", f"it is not made as expected ({error!r})", hint=_HINT) from error


def _assemble(folder: Path, description: dict[str, Any], generation_end_ids: Iterable[int]) -> TokenizerParts:
    config = {**_read_json(folder / "special_tokens_map.json"), **_read_json(folder / "tokenizer_config.json")}
    added = [token for token in description.get("added_tokens") or [] if token.get("content")]
    special = SpecialTokens(
        SpecialToken(
            token["id"],
            token["content"],
            is_control=bool(token.get("special")),
            eats_left=bool(token.get("lstrip")),
            eats_right=bool(token.get("rstrip")),
        )
        for token in added
        if not token["content"].isspace()
    )
    vocabulary = _vocabulary(folder / "tokenizer.json", description, added)
    bos_id, eos_id = (special.get(_token_text(config.get(name))) for name in ("bos_token", "eos_token"))
    return TokenizerParts(
        vocabulary=vocabulary,
        special_tokens=special,
        bos_id=bos_id,
        eos_id=eos_id,
        end_ids=end_ids(special, eos_id, *generation_end_ids),
        adds_bos=_adds_bos(description, config, bos_id),
        drops_space=_drops_space(description.get("decoder")),
        closing_id=_closing_id(description),
        spaces={token["content"]: token["id"] for token in added if token["content"].isspace()},
        chat_template=_chat_template(folder, config),
    )


def _vocabulary(path: Path, description: dict[str, Any], added: list[dict[str, Any]]) -> LibraryVocabulary:
    """The library's model alone: added tokens are found by us, for it would find them in what people type too."""
    from tokenizers import Tokenizer as LibraryTokenizer

    _seal(description["model"], {token["content"] for token in added if token.get("special")})
    stripped = {**description, "added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
    try:
        tokenizer = LibraryTokenizer.from_str(json.dumps(stripped))
    except Exception as error:  # the library raises bare exceptions
        raise UnusableFile(path, "tokenizer", str(error), hint=_HINT) from error
    return LibraryVocabulary(
        tokenizer,
        size=1 + max([*tokenizer.get_vocab(with_added_tokens=False).values(), *(token["id"] for token in added)]),
        is_byte_level="ByteLevel" in _types(description.get("decoder")),
        continuing=_continuing(tokenizer, description.get("pre_tokenizer")),
    )


def _seal(model: dict[str, Any], special: set[str]) -> None:
    """Make sure that no ordinary text can become one of the `special` pieces inside of the model itself."""
    if model.get("type") == "Unigram":
        model["vocab"] = [[SEALED + piece if piece in special else piece, score] for piece, score in model["vocab"]]
    elif model.get("ignore_merges"):
        model["vocab"] = {piece: token_id for piece, token_id in model["vocab"].items() if piece not in special}


def _continuing(tokenizer: tokenizers.Tokenizer, pre_tokenizer: Any) -> tokenizers.Tokenizer | None:
    """The same model for runs after special tokens, where only a text's first run gets a space put before it."""
    from tokenizers import Tokenizer as LibraryTokenizer
    from tokenizers import pre_tokenizers

    if not pre_tokenizer or pre_tokenizer.get("type") != "Metaspace" or pre_tokenizer.get("prepend_scheme") != "first":
        return None
    continuing = LibraryTokenizer(tokenizer.model)
    if tokenizer.normalizer is not None:
        continuing.normalizer = tokenizer.normalizer
    continuing.pre_tokenizer = pre_tokenizers.Metaspace(
        replacement=pre_tokenizer["replacement"], prepend_scheme="never", split=pre_tokenizer.get("split", True)
    )
    return continuing


def _adds_bos(description: Mapping[str, Any], config: Mapping[str, Any], bos_id: int | None) -> bool:
    if isinstance(config.get("add_bos_token"), bool):
        return bool(config["add_bos_token"])
    processor = description.get("post_processor") or {}
    for step in processor.get("processors", [processor]):
        first = (step.get("single") or [{}])[0].get("SpecialToken", {}).get("id")
        declared = (step.get("special_tokens") or {}).get(first, {}).get("ids", [])
        if bos_id is not None and bos_id in declared:
            return True
    return False


def _closing_id(description: Mapping[str, Any]) -> int | None:
    """The token that is put after a single text, as those do whose vectors are taken from it."""
    processor = description.get("post_processor") or {}
    for step in processor.get("processors", [processor]):
        template = step.get("single") or []
        last = template[-1].get("SpecialToken", {}).get("id") if len(template) > 1 else None
        if declared := (step.get("special_tokens") or {}).get(last, {}).get("ids"):
            return int(declared[0])
    return None


def _drops_space(decoder: Any) -> bool:
    """Whether decoding takes a leading space off, which encoding put there."""
    steps = (decoder or {}).get("decoders", [decoder or {}])
    return any(
        (step.get("type") == "Strip" and step.get("content") == " " and step.get("start"))
        or (step.get("type") == "Metaspace" and step.get("prepend_scheme", "always") != "never")
        for step in steps
    )


def _types(decoder: Any) -> set[str]:
    return {step.get("type") for step in (decoder or {}).get("decoders", [decoder or {}])}


def _chat_template(folder: Path, config: Mapping[str, Any]) -> str | None:
    beside = folder / "chat_template.jinja"
    if beside.is_file():
        return beside.read_text(encoding="utf-8")
    template = config.get("chat_template")
    if isinstance(template, list):
        named = {entry.get("name"): entry.get("template") for entry in template}
        template = named.get("default") or named.get("tool_use")
    return template if isinstance(template, str) and template else None


def _token_text(value: Any) -> str:
    return str(value.get("content", "")) if isinstance(value, dict) else value if isinstance(value, str) else ""


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a file; empty where there is none of that name. Raises `UnusableFile`."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UnusableFile(path, "JSON", str(error), hint=_HINT) from None
    if not isinstance(content, dict):
        raise UnusableFile(path, "JSON", f"it holds a {type(content).__name__} where an object is expected")
    return content
