"""BitsAndBytesConfig: that weights are rounded to 8 or 4 bits as they load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kaiwa.errors import InvalidOption, did_you_mean

# What says how bitsandbytes itself works. Kaiwa's rounding has its own measured recipe, so these change nothing on the
# CPU; on a GPU they go to bitsandbytes as they are.
_DETAILS = (
    "llm_int8_threshold", "llm_int8_skip_modules", "llm_int8_enable_fp32_cpu_offload", "llm_int8_has_fp16_weight",
    "bnb_4bit_compute_dtype", "bnb_4bit_quant_type", "bnb_4bit_use_double_quant", "bnb_4bit_quant_storage",
)  # fmt: skip


@dataclass(frozen=True, slots=True, init=False)
class BitsAndBytesConfig:
    """How many bits weights get as they load: `load_in_8bit=True` or `load_in_4bit=True`.

        kw.pipeline(model=…, model_kwargs={"quantization_config": kw.BitsAndBytesConfig(load_in_8bit=True)})

    On the built-in engine, this is Kaiwa's own rounding (`quantization="int8"` or `"int4"`). With `engine="torch"` on a
    GPU, bitsandbytes rounds, and gets the further settings, which carry its names.

    Raises `InvalidOption` for both or neither of the two, and for settings that bitsandbytes does not have.
    """

    load_in_8bit: bool
    load_in_4bit: bool
    details: dict[str, Any]

    def __init__(self, load_in_8bit: bool = False, load_in_4bit: bool = False, **details: Any) -> None:
        for name in details:
            if name not in _DETAILS:
                known = ("load_in_8bit", "load_in_4bit", *_DETAILS)
                raise InvalidOption(f"BitsAndBytesConfig has no setting {name!r}", hint=did_you_mean(name, known))
        if load_in_8bit == load_in_4bit:
            what = "both" if load_in_8bit else "neither"
            raise InvalidOption(
                f"{what} of load_in_8bit and load_in_4bit are set", hint="set one of them to True, or leave it all out"
            )
        object.__setattr__(self, "load_in_8bit", load_in_8bit)
        object.__setattr__(self, "load_in_4bit", load_in_4bit)
        object.__setattr__(self, "details", details)

    @property
    def quantization(self) -> str:
        """The same in Kaiwa's words."""
        return "int8" if self.load_in_8bit else "int4"
