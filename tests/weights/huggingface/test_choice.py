"""Which files of a repository are fetched."""

from __future__ import annotations

import pytest

from kaiwa.errors import InvalidOption, ModelNotFound, UnsupportedModel
from kaiwa.weights.huggingface.choice import choose, quantization_of
from kaiwa.weights.huggingface.hub_name import HubName, parse

SAFETENSORS = [
    *("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"),
    *("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"),
    *("README.md", "LICENSE", ".gitattributes", "consolidated.safetensors", "pytorch_model.bin"),
    *("original/consolidated.00.pth", "onnx/model.onnx", "training_args.bin", "modeling_evil.py"),
]
GGUF = [
    *("README.md", "mmproj-F16.gguf", "imatrix.gguf", "tiny-Q8_0.gguf", "tiny-q4_k_m.gguf", "tiny-IQ2_XXS.gguf"),
    *("BF16/tiny-BF16-00001-of-00002.gguf", "BF16/tiny-BF16-00002-of-00002.gguf", "tiny-UD-Q4_K_XL.gguf"),
    "MTP/mtp-tiny-Q5_0.gguf",
]


def name(text: str) -> HubName:
    parsed = parse(text)
    assert parsed is not None
    return parsed


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("org/name", HubName("org/name")),
        ("org/name:Q4_K_M", HubName("org/name", quantization="Q4_K_M")),
        ("org/name@v1.0:Q4_K_M", HubName("org/name", "v1.0", "Q4_K_M")),
        ("org/name@refs/pr/1", HubName("org/name", "refs/pr/1")),
        ("org/name/sub/m.gguf", HubName("org/name", file="sub/m.gguf")),
        ("org/name@abc/m.gguf", HubName("org/name", "abc", file="m.gguf")),
        ("https://huggingface.co/Qwen/Qwen2.5-0.5B", HubName("Qwen/Qwen2.5-0.5B")),
        ("hf.co/org/name:Q8_0", HubName("org/name", quantization="Q8_0")),
        ("https://hf.co/org/name/", HubName("org/name")),
        ("https://huggingface.co/org/name?library=transformers#use", HubName("org/name")),
        ("https://huggingface.co/org/name/tree/main", HubName("org/name")),
        ("https://huggingface.co/org/name/tree/refs%2Fpr%2F1", HubName("org/name", "refs/pr/1")),
        ("https://huggingface.co/org/name/tree/main/UD-Q4_K_XL", HubName("org/name", quantization="UD-Q4_K_XL")),
        ("https://huggingface.co/org/name/blob/v1/sub/m.gguf", HubName("org/name", "v1", file="sub/m.gguf")),
        ("https://huggingface.co/org/name/resolve/main/m.gguf?download=true", HubName("org/name", file="m.gguf")),
        ("https://huggingface.co/org/name/blob/main/model.safetensors", HubName("org/name")),
    ],
)
def test_names_and_their_parts(text: str, parsed: HubName) -> None:
    assert parse(text) == parsed
    assert parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    "text",
    ["", "name", "qwen3:4b", "./org/name", "../name", "/org/name", "org/model.gguf", "a/b/c", "org/name/../x.gguf"],
)
def test_what_is_no_name(text: str) -> None:
    assert parse(text) is None


def test_an_impossible_revision() -> None:
    with pytest.raises(InvalidOption, match="revision='a b' is impossible"):
        parse("org/name", revision="a b")


def test_safetensors_come_without_their_twins() -> None:
    assert set(choose(SAFETENSORS, name("org/name")).files) == set(SAFETENSORS[:8])


def test_one_quantization_comes_with_all_its_parts() -> None:
    assert choose(GGUF, name("org/name:bf16")).files == (GGUF[6], GGUF[7])
    assert choose(GGUF, name("org/name:UD-Q4_K_XL")).entry == "tiny-UD-Q4_K_XL.gguf"
    second = choose(GGUF, name(f"org/name/{GGUF[7]}"))
    assert (second.files, second.entry, second.num_parts) == ((GGUF[6], GGUF[7]), GGUF[6], 2)


def test_the_default_quantization_says_what_it_could_have_been() -> None:
    choice = choose(GGUF, name("org/name"))
    assert (choice.files, choice.quantization) == (("tiny-q4_k_m.gguf",), "Q4_K_M")
    assert choice.others == ("BF16", "IQ2_XXS", "Q8_0", "UD-Q4_K_XL")
    assert choose(["tiny.gguf"], name("org/name")).others == ()


def test_safetensors_come_before_gguf_unless_chosen() -> None:
    both = [*SAFETENSORS, *GGUF]
    assert choose(both, name("org/name")).entry == ""
    assert choose(both, name("org/name:Q8_0")).files == ("tiny-Q8_0.gguf",)


@pytest.mark.parametrize(
    ("file", "quantization"),
    [
        ("a-Q4_K_M.gguf", "Q4_K_M"), ("a.q4_0.gguf", "Q4_0"), ("Q8_0/a-Q8_0-00001-of-00003.gguf", "Q8_0"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"), ("a-fp16.gguf", "F16"), ("a-IQ4_XS.gguf", "IQ4_XS"), ("qwen3-4b.gguf", ""),
        ("TQ1_0/a-TQ1_0.gguf", "TQ1_0"),
    ],
)  # fmt: skip
def test_what_a_file_name_says_of_its_numbers(file: str, quantization: str) -> None:
    assert quantization_of(file) == quantization


@pytest.mark.parametrize(
    ("files", "asked", "kind", "message", "hint"),
    [
        (GGUF, "o/n:Q4_K_S", ModelNotFound, "o/n has no Q4_K_S", "did you mean 'Q4_K_M'"),
        (GGUF, "o/n/tiny-Q8.gguf", ModelNotFound, "has no file 'tiny-Q8.gguf'", "did you mean 'tiny-Q8_0.gguf'"),
        (SAFETENSORS, "o/n:Q8_0", ModelNotFound, "has no GGUF files", "leave :Q8_0 out"),
        (["config.json", "pytorch_model.bin"], "o/n", UnsupportedModel, "pickles only", "safetensors"),
        (["adapter_config.json", "adapter_model.safetensors"], "o/n", UnsupportedModel, "an adapter", "merge it"),
        (["README.md"], "o/n", ModelNotFound, "holds no language model", "it holds README.md"),
    ],
)
def test_what_cannot_be_chosen(
    files: list[str], asked: str, kind: type[ModelNotFound], message: str, hint: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        choose(files, name(asked))
    assert hint in caught.value.hint
