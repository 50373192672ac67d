"""From a folder with a checkpoint to a torch engine: where the weights go, and in which numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kaiwa.engines.torch.engine import TorchEngine
from kaiwa.errors import InvalidOption, UnsupportedFormat, UnsupportedModel, UnusableFile
from kaiwa.events import Progress
from kaiwa.extras import require

FEATURE = "the torch engine"


def load(
    path: Path,
    *,
    context_length: int | None = None,
    threads: int | None = None,
    quantization: str | None = None,
    dtype: str | None = None,
    device_map: Any = None,
    quantization_config: Any = None,
    max_memory: Mapping[Any, Any] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> TorchEngine:
    """Load a folder with `config.json` and safetensors through transformers. No code that comes with it is run.

    `device_map` is "cpu", "cuda", "cuda:0", "mps", "auto" (the fastest there is) or a dictionary. `quantization` is
    "int8" or "int4", and `quantization_config` has details for it: bitsandbytes rounds then, on a GPU.

    Raises `MissingExtra` without torch and transformers, `UnsupportedModel` for a family that transformers does not
    know, `UnsupportedFormat` for GGUF, `InvalidOption` for a device that is not there.
    """
    torch = require("torch", feature=FEATURE, extra="torch")
    transformers = require("transformers", feature=FEATURE, extra="torch")
    if path.suffix == ".gguf":
        raise UnsupportedFormat(
            path, "model", "the torch engine reads safetensors, and this is GGUF", hint='use engine="llama-cpp"'
        )
    device = _device(torch, device_map)
    options: dict[str, Any] = {"dtype": dtype or "auto"}
    if quantization is not None:
        _check_quantization(torch, quantization)
        options["quantization_config"] = _bits(transformers, quantization, quantization_config)
    if device is None or quantization is not None:
        require("accelerate", feature="spreading a model over devices", extra="torch")
        options["device_map"] = device_map if device is None else {"": device}
        if max_memory is not None:
            options["max_memory"] = dict(max_memory)
    if threads is not None:
        torch.set_num_threads(threads)
    if on_progress is not None:
        on_progress(Progress("load", 0, 1, "tensors"))
    model = _from_pretrained(transformers, path, options)
    if device is not None and quantization is None:
        model = model.to(device)
    if on_progress is not None:
        on_progress(Progress("load", 1, 1, "tensors"))
    number_format = {"int8": "bitsandbytes 8 bit", "int4": "bitsandbytes 4 bit"}.get(quantization or "", "")
    return TorchEngine(
        model,
        name=str(device) if device is not None else "several devices",
        number_format=number_format,
        context_length=context_length,
    )


def has_gpu() -> bool:
    """Whether torch is installed and sees a CUDA device. Asks torch only where the system has a driver for one."""
    if not Path("/dev/nvidiactl").exists():
        return False
    try:
        torch = require("torch", feature=FEATURE)
        return bool(torch.cuda.is_available())
    except ImportError:
        return False


def _from_pretrained(transformers: Any, path: Path, options: Mapping[str, Any]) -> Any:
    bars = transformers.utils.logging
    showed = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        return transformers.AutoModelForCausalLM.from_pretrained(
            path, trust_remote_code=False, local_files_only=True, **options
        )
    except (ValueError, KeyError) as error:
        raise UnsupportedModel(
            f"transformers {transformers.__version__} cannot load {path}: {_first_line(error)}",
            hint="a newer transformers may know the family",
        ) from error
    except OSError as error:
        raise UnusableFile(path, "model", _first_line(error)) from error
    finally:
        if showed:
            bars.enable_progress_bar()


def _device(torch: Any, wanted: Any) -> str | None:
    """The one device that the model goes to; None where it is spread over several."""
    if isinstance(wanted, dict) or wanted in ("balanced", "sequential"):
        return None
    if wanted in (None, "auto"):
        if torch.cuda.is_available():
            return "cuda" if torch.cuda.device_count() == 1 else None
        return "mps" if torch.backends.mps.is_available() else "cpu"
    name = str(wanted)
    kind = name.partition(":")[0]
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if kind not in there:
        raise InvalidOption(f"device_map={wanted!r} is impossible", hint="cpu, cuda, cuda:0, mps, auto or a dictionary")
    if not there[kind]:
        raise InvalidOption(f"there is no {kind} device here", hint="use device_map='cpu', or leave it out")
    return name


def _check_quantization(torch: Any, quantization: str) -> None:
    if quantization not in ("int8", "int4"):
        raise InvalidOption(f"quantization={quantization!r} is not known", hint="known are int4, int8")
    if not torch.cuda.is_available():
        raise InvalidOption(
            f"quantization={quantization!r} on the torch engine needs a CUDA device, for bitsandbytes",
            hint='leave out engine="torch": the built-in engine rounds weights on the CPU',
        )
    require("bitsandbytes", feature="quantization on the torch engine")


def _bits(transformers: Any, quantization: str, config: Any) -> Any:
    details = dict(getattr(config, "details", {}))
    return transformers.BitsAndBytesConfig(**{f"load_in_{quantization.removeprefix('int')}bit": True}, **details)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]
