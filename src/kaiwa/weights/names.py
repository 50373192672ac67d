"""What GGUF files call things, in Hugging Face's words: configuration keys and tensor names.

`gguf_families` has a table for each architecture; nothing here knows one.
"""

from __future__ import annotations

import array
import re
import struct
from collections.abc import Mapping
from typing import Any

from kaiwa.errors import UnsupportedModel, UnusableFile
from kaiwa.weights.checkpoint import Tensor
from kaiwa.weights.config import normalize_config
from kaiwa.weights.gguf_families import FAMILIES, VARIANTS, Family
from kaiwa.weights.gguf_header import KIND

_ROPE_SCALING_KEYS = {
    "rope.scaling.factor": "factor",
    "rope.scaling.original_context_length": "original_max_position_embeddings",
    "rope.scaling.attn_factor": "attention_factor",
    "rope.scaling.yarn_attn_factor": "attention_factor",
    "rope.scaling.yarn_log_multiplier": "mscale_all_dim",
    "attention.temperature_scale": "llama_4_scaling_beta",
    "rope.scaling.yarn_beta_fast": "beta_fast",
    "rope.scaling.yarn_beta_slow": "beta_slow",
}
_ROPE_TYPES = {"none": "default", "linear": "linear", "yarn": "yarn", "longrope": "longrope"}

_SAMPLING_KEYS = {
    "general.sampling.temp": "temperature",
    "general.sampling.top_k": "top_k",
    "general.sampling.top_p": "top_p",
    "general.sampling.min_p": "min_p",
    "general.sampling.penalty_repeat": "repetition_penalty",
}
_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
_CONTROL_TOKEN = 3
# Files of chat models often name only the end of a document as their end; these texts end a turn in any family.
_TURN_ENDS = frozenset(
    ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|end_of_text|>", "<|endoftext|>", "<end_of_turn>", "<EOT>")
)


def family_of(metadata: Mapping[str, Any], *, path: object) -> tuple[str, Family]:
    """The architecture's name and its entry. Raises `UnsupportedModel` that lists those which are known."""
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str):
        raise UnusableFile(path, KIND, "general.architecture, which names the model's family, is missing")
    if architecture not in FAMILIES:
        raise UnsupportedModel(
            f"{path} is a model of the family {architecture!r}; the built-in engine knows {', '.join(FAMILIES)}",
            hint='engine="torch" runs most families',
        )
    variant = VARIANTS.get(architecture)
    if variant is not None and variant.is_meant_by(metadata.get(f"{architecture}.{variant.key}")):
        return architecture, variant.family
    return architecture, FAMILIES[architecture]


def tensor_name(family: Family, name: str, *, path: object) -> str:
    """Hugging Face's name of a tensor. Raises `UnsupportedModel` for one that the family does not have."""
    layer = re.match(r"blk\.(0|[1-9]\d*)\.", name)
    pattern = name.replace(layer[0], "blk.{N}.", 1) if layer else name
    if pattern not in family.tensors:
        raise UnsupportedModel(
            f"{path} holds the tensor {name!r}, which no {family.model_type} model that Kaiwa knows has",
            hint='engine="torch" runs most families',
        )
    return family.tensors[pattern].replace("{N}", layer[1] if layer else "")


def config_of(metadata: Mapping[str, Any], tensors: Mapping[str, Tensor], *, path: object) -> dict[str, Any]:
    """The configuration as `config.json` would have it, checked; `tensors` have Hugging Face's names.

    `rope_interleaved` is True where the rows of q and k are stored for positions that turn neighbouring numbers.
    """
    architecture, family = family_of(metadata, path=path)
    names = {theirs: f"{architecture}.{ours}" for ours, theirs in family.keys.items()}
    config: dict[str, Any] = {
        theirs: _plain(metadata[key], key, path) for theirs, key in names.items() if key in metadata
    }
    if "attention.value_length" not in family.keys:
        _check_value_length(metadata, architecture, path)
    num_tokens = len(_vocabulary(metadata, path))
    embeddings = tensors.get("model.embed_tokens.weight")
    if embeddings is None:
        raise UnusableFile(path, KIND, "it holds no tensor 'token_embd.weight'", hint="is it a vocabulary only?")
    if num_tokens > embeddings.shape[0]:
        raise UnusableFile(
            path, KIND, f"it has {num_tokens:,} tokens, and 'token_embd.weight' only {embeddings.shape[0]:,} rows"
        )
    config |= family.constants
    config |= {
        "model_type": family.model_type,
        "vocab_size": embeddings.shape[0],
        "tie_word_embeddings": "lm_head.weight" not in tensors,
        "attention_bias": "model.layers.0.self_attn.q_proj.bias" in tensors,
        "mlp_bias": "model.layers.0.mlp.up_proj.bias" in tensors,
        "rope_parameters": _rope_parameters(metadata, architecture, path),
    }
    if config.get("sliding_window") == 0:
        config["sliding_window"] = None
    config |= _layer_types(metadata.get(f"{architecture}.attention.sliding_window_pattern"))
    for ours, theirs in family.lists.items():
        if (value := metadata.get(f"{architecture}.{ours}")) is not None:
            config[theirs] = list(value) if isinstance(value, list | array.array) else value
    config |= family.derive(config)
    if "rope_factors_long.weight" in tensors:
        config["rope_parameters"]["rope_type"] = "longrope"
    config |= {key: value for key, value in generation_config_of(metadata, path=path).items() if key.endswith("_id")}
    return normalize_config(config, path=path, kind=KIND, name_of=lambda key: names.get(key, key))


def generation_config_of(metadata: Mapping[str, Any], *, path: object) -> dict[str, Any]:
    """What `generation_config.json` would say: special token ids (`eos_token_id` is a list), sampling defaults."""
    config = {theirs: _plain(metadata[key], key, path) for key, theirs in _SAMPLING_KEYS.items() if key in metadata}
    ids = {key: _token_id(metadata, key, path) for key in ("bos_token_id", *_END_KEYS)}
    if ids["bos_token_id"] is not None:
        config["bos_token_id"] = ids["bos_token_id"]
    ends = {id for key in _END_KEYS if (id := ids[key]) is not None}
    config["eos_token_id"] = sorted(ends | _turn_ends(metadata, path))
    return config


def _vocabulary(metadata: Mapping[str, Any], path: object) -> list[str]:
    texts = metadata.get("tokenizer.ggml.tokens", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts[:1]):  # all are of one type
        raise UnusableFile(path, KIND, "tokenizer.ggml.tokens is not a list of texts")
    return texts


def _turn_ends(metadata: Mapping[str, Any], path: object) -> set[int]:
    texts, types = _vocabulary(metadata, path), metadata.get("tokenizer.ggml.token_type")
    if not isinstance(types, array.array) or len(types) > len(texts):
        return set()
    return {id for id, type in enumerate(types) if type == _CONTROL_TOKEN and texts[id] in _TURN_ENDS}


def _token_id(metadata: Mapping[str, Any], key: str, path: object) -> int | None:
    key = f"tokenizer.ggml.{key}"
    value = metadata.get(key)
    if value is None:
        return None
    num_tokens = len(_vocabulary(metadata, path))
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < num_tokens:
        raise UnusableFile(path, KIND, f"{key} is {value!r}, and the vocabulary has {num_tokens:,} tokens")
    return value


def _check_value_length(metadata: Mapping[str, Any], architecture: str, path: object) -> None:
    key_length = metadata.get(f"{architecture}.attention.key_length")
    value_length = metadata.get(f"{architecture}.attention.value_length")
    if value_length is not None and value_length != key_length:
        raise UnsupportedModel(f"{path} has heads of {key_length} numbers in its keys and {value_length} in its values")


def _rope_parameters(metadata: Mapping[str, Any], architecture: str, path: object) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        theirs: _plain(metadata[f"{architecture}.{ours}"], ours, path)
        for ours, theirs in _ROPE_SCALING_KEYS.items()
        if f"{architecture}.{ours}" in metadata
    }
    # Older files write only a factor, under an older name too, and mean linear scaling.
    if (legacy := metadata.get(f"{architecture}.rope.scale_linear")) is not None:
        parameters.setdefault("factor", legacy)
    key = f"{architecture}.rope.scaling.type"
    scaling = metadata.get(key, "linear" if parameters.get("factor") else "none")
    if not isinstance(scaling, str) or scaling not in _ROPE_TYPES:
        raise UnsupportedModel(f"{path} has {key} {scaling!r}; Kaiwa knows {', '.join(_ROPE_TYPES)}")
    if scaling == "none":
        return {"rope_type": "default"}
    if "mscale_all_dim" in parameters:
        parameters["mscale"] = 1.0
    return {**parameters, "rope_type": _ROPE_TYPES[scaling]}


def _layer_types(pattern: Any) -> dict[str, Any]:
    """Which layers see a window: one in every so many does not, or as a list says."""
    if pattern is None:
        return {}
    if isinstance(pattern, list | array.array):
        return {"layer_types": ["sliding_attention" if is_sliding else "full_attention" for is_sliding in pattern]}
    return {"sliding_window_pattern": pattern}


def _plain(value: Any, key: str, path: object) -> Any:
    """A number as a person would write it; one number where a file repeats it for every layer."""
    if isinstance(value, array.array):
        if len(set(value)) != 1:
            raise UnsupportedModel(f"{path} has a {key} that differs from layer to layer: {value.tolist()}")
        value = value[0]
    if isinstance(value, float):
        return _shortest(value)
    return value


def _shortest(value: float) -> float:
    """The shortest decimal that is the same number in float32: 0.9, where a file has 0.8999999761581421."""
    single = struct.Struct("<f")
    try:
        packed = single.pack(value)
    except OverflowError:
        return value
    return next(
        (short for digits in range(1, 10) if single.pack(short := float(f"{value:.{digits}g}")) == packed), value
    )
