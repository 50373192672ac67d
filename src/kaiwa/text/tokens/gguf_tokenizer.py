"""Tokenizers rebuilt from the metadata of a GGUF file (`tokenizer.ggml.*`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kaiwa.errors import UnsupportedFormat, UnusableFile
from kaiwa.text.tokens import pretokenizers
from kaiwa.text.tokens.scored_pieces import ScoredPieces
from kaiwa.text.tokens.special_tokens import SpecialToken, SpecialTokens, end_ids
from kaiwa.text.tokens.tokenizer_parts import TokenizerParts
from kaiwa.text.tokens.vocabulary import SPACE_MARK, LibraryVocabulary

PREFIX = "tokenizer.ggml."


class Kind(IntEnum):
    """What `tokenizer.ggml.token_type` says of a token."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


_CONTROL = (Kind.CONTROL, Kind.UNKNOWN)


@dataclass(frozen=True, slots=True)
class _Source:
    """The metadata, checked. `pieces` are by id, and so are `scores`, where there are any.

    `unusual` has the kind of every id that is not normal: a few of many, so that no pass goes over all of them twice.
    """

    metadata: Mapping[str, Any]
    path: object
    pieces: Sequence[str]
    unusual: Mapping[int, int]
    scores: Sequence[float]

    def get(self, key: str, default: Any = None) -> Any:
        return self.metadata.get(PREFIX + key, default)

    def ids_of(self, *kinds: Kind) -> list[int]:
        """The ids of some of the unusual kinds."""
        return [token_id for token_id, kind in self.unusual.items() if kind in kinds]

    def token_id(self, key: str, default: int | None = None) -> int | None:
        """The id under `key`, or None where the file has none that it could be."""
        found = self.get(key, default)
        return found if isinstance(found, int) and 0 <= found < len(self.pieces) else None

    def broken(self, reason: str) -> UnusableFile:
        return UnusableFile(self.path, "GGUF", reason, hint="download the file again, or convert the model again")

    def unsupported(self, reason: str, hint: str) -> UnsupportedFormat:
        return UnsupportedFormat(self.path, "GGUF", reason, hint=hint)


def rebuild(metadata: Mapping[str, Any], path: object) -> TokenizerParts:
    """The tokenizer that the metadata describes. Raises `UnusableFile` or `UnsupportedFormat`, which name `path`."""
    source = _read(metadata, path)
    model = source.get("model")
    if model == "gpt2":
        return _byte_level(source)
    if model == "llama":
        return _scored(source)
    if model == "gemma4":
        return _gemma4(source)
    raise source.unsupported(f"its tokenizer is of the kind {model!r}", "known are gpt2 (BPE), llama (SentencePiece)")


def _byte_level(source: _Source) -> TokenizerParts:
    """Byte-level BPE: GPT-2, Llama 3, Qwen, SmolLM."""
    name = source.get("pre")
    kind = pretokenizers.BY_NAME.get(name)
    if kind is None:
        raise source.unsupported(
            f"its pre-tokenizer is {name!r}" if name else "it does not say how text is cut (tokenizer.ggml.pre)",
            f"convert the model again; known are {', '.join(sorted(pretokenizers.BY_NAME))}",
        )
    tokenizer = _merging(source, ignore_merges=kind.keeps_words)
    tokenizer.pre_tokenizer = pretokenizers.build(kind)
    vocabulary = LibraryVocabulary(
        tokenizer, size=len(source.pieces), is_byte_level=True, extra_pieces=_unmergeable(source)
    )
    return _assemble(source, vocabulary, adds_bos=kind.adds_bos)


def _gemma4(source: _Source) -> TokenizerParts:
    """BPE over SentencePiece's way of writing: spaces are `▁`, bytes are `<0x0A>`, lines are cut before merging."""
    from tokenizers import Regex, normalizers, pre_tokenizers

    tokenizer = _merging(source, byte_fallback=True, fuse_unk=True)
    tokenizer.normalizer = normalizers.Replace(" ", SPACE_MARK)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n+"), "isolated")
    vocabulary = LibraryVocabulary(
        tokenizer, size=len(source.pieces), is_byte_level=False, extra_pieces=_unmergeable(source)
    )
    return _assemble(source, vocabulary, adds_bos=True)


def _scored(source: _Source) -> TokenizerParts:
    """SentencePiece with scores and byte fallback: Llama 2, Mistral, Gemma, Phi-3."""
    if not source.scores:
        raise source.broken("it has no tokenizer.ggml.scores")
    adds_space = bool(source.get("add_space_prefix", True))
    vocabulary = ScoredPieces(
        source.pieces,
        source.scores,
        mergeable=_mergeable(source, leave_out=(*_CONTROL, Kind.BYTE)),
        byte_ids={int(source.pieces[token_id][3:5], 16): token_id for token_id in source.ids_of(Kind.BYTE)},
        unknown_id=source.token_id("unknown_token_id", 0),
        adds_space=adds_space,
    )
    return _assemble(source, vocabulary, adds_bos=True, bos_id=1, eos_id=2, drops_space=adds_space)


def _merging(source: _Source, **options: Any) -> Any:
    """The `tokenizers` library's BPE over the pieces that text may become, special ones left out."""
    from tokenizers import Tokenizer as LibraryTokenizer
    from tokenizers import models

    lines = source.get("merges")
    if not isinstance(lines, Sequence) or not lines or set(map(type, lines)) != {str}:
        raise source.broken("it has no tokenizer.ggml.merges")
    markup = () if options.get("byte_fallback") else (Kind.USER_DEFINED, Kind.BYTE)
    pieces = _mergeable(source, leave_out=(*_CONTROL, Kind.UNUSED, *markup))
    try:
        return LibraryTokenizer(models.BPE(pieces, [tuple(line.split(" ", 1)) for line in lines], **options))
    except Exception as error:  # the library raises bare exceptions
        raise source.broken(f"its merges do not fit its tokens: {error}") from error


def _mergeable(source: _Source, *, leave_out: tuple[Kind, ...]) -> dict[str, int]:
    """The pieces that ordinary text may become, with their ids."""
    pieces = dict(zip(source.pieces, range(len(source.pieces)), strict=True))
    for token_id in source.ids_of(*leave_out):
        pieces.pop(source.pieces[token_id], None)
    return pieces


def _unmergeable(source: _Source) -> dict[int, str]:
    """Pieces that only decoding may meet: unused ids, and doubles of which text becomes the last."""
    unused = {token_id: source.pieces[token_id] for token_id in source.ids_of(Kind.UNUSED)}
    last = dict(zip(source.pieces, range(len(source.pieces)), strict=True))
    if len(last) == len(source.pieces):
        return unused
    return unused | {token_id: piece for token_id, piece in enumerate(source.pieces) if last[piece] != token_id}


def _assemble(
    source: _Source,
    vocabulary: LibraryVocabulary | ScoredPieces,
    *,
    adds_bos: bool,
    bos_id: int | None = None,
    eos_id: int | None = None,
    drops_space: bool = False,
) -> TokenizerParts:
    special = SpecialTokens(_special_tokens(source))
    eos_id = source.token_id("eos_token_id", eos_id)
    template = source.metadata.get("tokenizer.chat_template")
    return TokenizerParts(
        vocabulary=vocabulary,
        special_tokens=special,
        bos_id=source.token_id("bos_token_id", bos_id),
        eos_id=eos_id,
        end_ids=end_ids(special, eos_id, source.token_id("eot_token_id"), source.token_id("eom_token_id")),
        adds_bos=bool(source.get("add_bos_token", adds_bos)),
        drops_space=drops_space,
        closing_id=eos_id if source.get("add_eos_token") is True else None,
        spaces={
            source.pieces[token_id]: token_id
            for token_id in source.ids_of(Kind.USER_DEFINED)
            if source.pieces[token_id].isspace()
        },
        chat_template=template if isinstance(template, str) and template else None,
    )


def _special_tokens(source: _Source) -> list[SpecialToken]:
    # Phi-3 was trained without the line breaks that its template writes after special tokens; GGUF files do not
    # say so, and llama.cpp goes by the model's name too.
    model_name = str(source.metadata.get("general.name", "")).lower()
    eats_right = "phi-3" in model_name or "phi3" in model_name
    return [
        SpecialToken(
            token_id,
            piece,
            is_control=source.unusual[token_id] in _CONTROL,
            eats_right=eats_right and piece not in ("<unk>", "<s>", "<|endoftext|>"),
        )
        for token_id in source.ids_of(*_CONTROL, Kind.USER_DEFINED)
        if not (piece := source.pieces[token_id]).isspace()
    ]


def _read(metadata: Mapping[str, Any], path: object) -> _Source:
    source = _Source(metadata, path, (), {}, ())
    pieces = source.get("tokens")
    if not isinstance(pieces, Sequence) or not pieces or set(map(type, pieces)) != {str}:
        raise source.broken("it has no tokenizer (tokenizer.ggml.tokens)")
    kinds = source.get("token_type", [Kind.NORMAL] * len(pieces))
    scores = source.get("scores", ())
    for name, values in (("token_type", kinds), ("scores", scores)):
        if not isinstance(values, Sequence) or isinstance(values, str):
            raise source.broken(f"tokenizer.ggml.{name} is {values!r}, not one value for each token")
        if len(values) != len(pieces) and (len(values) or name != "scores"):
            raise source.broken(f"it has {len(pieces):,} tokens but {len(values):,} values in tokenizer.ggml.{name}")
        if not set(map(type, values)) <= {int, float, Kind}:
            raise source.broken(f"tokenizer.ggml.{name} has values that are no numbers")
    normal = int(Kind.NORMAL)
    unusual = {token_id: kind for token_id, kind in enumerate(kinds) if kind != normal}
    return _Source(metadata, path, pieces, unusual, scores)
