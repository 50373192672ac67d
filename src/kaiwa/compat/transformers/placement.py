"""Where and how a model is loaded, in transformers' words, made into what `kw.LLM` takes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kaiwa.compat.transformers.quantization import BitsAndBytesConfig
from kaiwa.errors import InvalidOption, did_you_mean

_DTYPES = ("auto", "float32", "float16", "bfloat16")
_PLAIN = ("F32", "F16", "BF16", "float32", "float16", "bfloat16", "")
_HERE = ("auto", "cpu", None)
_ENGINES = ("auto", "native", "torch", "llama-cpp")
# What transformers' loading takes and Kaiwa does always, or in a way of its own.
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "trust_remote_code": (False,),
    "low_cpu_mem_usage": (True, False),
    "use_safetensors": (True,),
    "attn_implementation": ("sdpa", "eager", "flash_attention_2"),
    "use_fast": (True,),
    "local_files_only": (False,),
    "framework": ("pt",),
}
_REASONS = {
    "trust_remote_code": "Kaiwa never runs code that comes with a model",
    "local_files_only": "set HF_HUB_OFFLINE=1",
    "cache_dir": "set HF_HOME",
    "gguf_file": "pass org/name/file.gguf, or the file's path, as the model",
    "attn_implementation": "leave it out",
}
NAMES = frozenset(
    (
        *("dtype", "torch_dtype", "device_map", "device", "quantization_config", "revision", "token", "max_memory"),
        *("engine", "threads", "context_length", "quantization", "load_in_8bit", "load_in_4bit", "assistant_model"),
        *_HARMLESS,
        *_REASONS,
    )
)


@dataclass(frozen=True, slots=True)
class Placement:
    """What to load: the name, and how."""

    model: str | Path
    engine: str = "auto"
    quantization: str | None = None
    context_length: int | None = None
    threads: int | None = None
    assistant_model: Any = None
    """A smaller model that guesses: a name, a path, or one that is loaded."""
    dtype: str | None = None
    device_map: Any = None
    quantization_config: BitsAndBytesConfig | None = None
    max_memory: Mapping[Any, Any] | None = None
    """The last four are for the torch engine, where that is used."""


def read(model: str | Path, options: Mapping[str, Any]) -> Placement:
    """The keyword arguments of `from_pretrained` or `pipeline`, checked.

    Raises `InvalidOption` for a name that is unknown, with the nearest, and for a value that would be ignored.
    """
    for name in options:
        if name not in NAMES:
            raise InvalidOption(f"there is no loading option {name!r}", hint=did_you_mean(name, NAMES))
    given = {name: value for name, value in options.items() if value is not None}
    for name in (*_HARMLESS, *_REASONS):
        if name in given and given[name] not in _HARMLESS.get(name, ()):
            raise InvalidOption(f"{name}={given[name]!r} is impossible", hint=_REASONS.get(name, f"leave {name} out"))
    dtype = _dtype(given)
    device = _device(given)
    config = _quantization(given)
    engine = str(given.get("engine", "auto"))
    if engine not in _ENGINES:
        raise InvalidOption(f"there is no engine {engine!r}", hint=did_you_mean(engine, _ENGINES))
    if device not in _HERE and engine == "auto":
        engine = "torch"
    return Placement(
        model=_located(model, given),
        engine=engine,
        quantization=given.get("quantization") or (config.quantization if config and engine != "torch" else None),
        context_length=given.get("context_length"),
        threads=given.get("threads"),
        assistant_model=given.get("assistant_model"),
        dtype=dtype,
        device_map=device,
        quantization_config=config,
        max_memory=given.get("max_memory"),
    )


def drop_needless_quantization(quantization: str | None, *, number_format: str, name: str) -> str | None:
    """`quantization`, or None with a warning where the model's numbers are small already."""
    if quantization is None or number_format in _PLAIN:
        return quantization
    warnings.warn(
        f"{name} is quantized already ({number_format}): it is loaded as it is, and not rounded a second time",
        stacklevel=4,
    )
    return None


def _dtype(given: Mapping[str, Any]) -> str | None:
    """The number format asked for. The built-in engine keeps the file's numbers, which is never less exact."""
    if "dtype" in given and "torch_dtype" in given and given["dtype"] != given["torch_dtype"]:
        raise InvalidOption(
            "dtype and torch_dtype are two names of one thing, and differ", hint="leave torch_dtype out"
        )
    value = given.get("dtype", given.get("torch_dtype"))
    if value is None:
        return None
    name = str(value).removeprefix("torch.")
    if name not in _DTYPES:
        raise InvalidOption(f"dtype={value!r} is impossible", hint=f"dtype is one of {', '.join(_DTYPES)}")
    return name


def _device(given: Mapping[str, Any]) -> Any:
    """Where the model shall be; "auto" leaves it to Kaiwa."""
    if "device" in given and "device_map" in given:
        raise InvalidOption("device and device_map are two ways to say one thing", hint="leave one of the two out")
    device = given.get("device_map", given.get("device"))
    if isinstance(device, int) and not isinstance(device, bool):
        return "cpu" if device < 0 else f"cuda:{device}"
    if device is None or isinstance(device, dict):
        return device
    name = str(device)
    if name in ("auto", "cpu", "mps", "balanced", "sequential") or name.partition(":")[0] == "cuda":
        return name
    raise InvalidOption(
        f"device_map={device!r} is impossible",
        hint='it is "auto", "cpu", "cuda", "cuda:0", "mps", or a dictionary from modules to devices',
    )


def _quantization(given: Mapping[str, Any]) -> BitsAndBytesConfig | None:
    bits = {name: given[name] for name in ("load_in_8bit", "load_in_4bit") if given.get(name)}
    config = given.get("quantization_config") or (BitsAndBytesConfig(**bits) if bits else None)
    if isinstance(config, Mapping):
        config = BitsAndBytesConfig(**{name: value for name, value in config.items() if name != "quant_method"})
    if config is None or isinstance(config, BitsAndBytesConfig):
        return config
    flags = {name: getattr(config, name, False) for name in ("load_in_8bit", "load_in_4bit")}
    if not any(flags.values()):
        raise InvalidOption(
            f"quantization_config={type(config).__name__}(…) is not supported",
            hint="use kw.BitsAndBytesConfig(load_in_8bit=True) or (load_in_4bit=True)",
        )
    return BitsAndBytesConfig(**flags)  # transformers' own object of the same meaning


def _located(model: str | Path, given: Mapping[str, Any]) -> str | Path:
    """The model's name with its revision; or its path, fetched with the token that was given."""
    revision, token = given.get("revision"), given.get("token")
    if revision is None and not isinstance(token, str):
        return model
    from kaiwa.weights import hub

    return hub.resolve(model, revision=revision, token=token if isinstance(token, str) else None)
