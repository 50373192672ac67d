"""AutoTokenizer: text to token ids and back, and chat templates, under transformers' names."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from kaiwa.chat.tool_schema import ToolLike, schemas
from kaiwa.compat.transformers import placement
from kaiwa.compat.transformers.encoding import Encoding, TemplateText, as_tensors
from kaiwa.compat.transformers.token_rows import TokenRows, padded, rows_of
from kaiwa.errors import InvalidMessages, InvalidOption
from kaiwa.messages import normalize
from kaiwa.text.templates.chat_template import ChatTemplate
from kaiwa.text.templates.prompt import RenderedPrompt
from kaiwa.text.tokens.tokenizer import Tokenizer

_TENSORS = ("pt", "np")


class AutoTokenizer:
    """Finds a model's tokenizer, and never loads its weights."""

    @staticmethod
    def from_pretrained(model: str | Path, **options: Any) -> CompatTokenizer:
        """The tokenizer of a short name, a name on the hub, or a path.

        Raises what `kw.LLM` raises for the name, and `InvalidOption` for an unknown option.
        """
        from kaiwa.runtime.loading.loader import tokenizer_of
        from kaiwa.weights import hub
        from kaiwa.weights.open import open_checkpoint

        path = hub.resolve(placement.read(model, options).model)
        with closing(open_checkpoint(path)) as checkpoint:
            context_length = int(checkpoint.config["max_position_embeddings"])
            return CompatTokenizer(tokenizer_of(checkpoint), context_length=context_length)


class CompatTokenizer:
    """A tokenizer under transformers' names.

    It differs where transformers lets a person's text become control tokens: text that looks like one stays text, here
    and in chat templates. Lists come in place of tensors, with `shape` and `to`; with torch installed,
    `return_tensors="pt"` gives real ones.
    """

    def __init__(self, tokenizer: Tokenizer, *, context_length: int = 0, template: ChatTemplate | None = None) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self.model_max_length = context_length
        self.padding_side = "left"
        self._pad_id: int | None = None

    @property
    def chat_template(self) -> str | None:
        """The source of the model's chat template."""
        return self._tokenizer.chat_template

    @property
    def vocab_size(self) -> int:
        """How many token ids there are."""
        return self._tokenizer.vocab_size

    def __len__(self) -> int:
        return self._tokenizer.vocab_size

    @property
    def bos_token_id(self) -> int | None:
        """The token that begins a sequence."""
        return self._tokenizer.bos_id

    @property
    def eos_token_id(self) -> int | None:
        """The token that ends a sequence."""
        return self._tokenizer.eos_id

    @property
    def pad_token_id(self) -> int:
        """What fills rows up to one length: the end where nobody says, as no model reads it here."""
        return self._tokenizer.eos_id or 0 if self._pad_id is None else self._pad_id

    @pad_token_id.setter
    def pad_token_id(self, token_id: int) -> None:
        self._pad_id = token_id

    @property
    def pad_token(self) -> str:
        """Its text. May be set to that of any single token."""
        return self._tokenizer.decode([self.pad_token_id])

    @pad_token.setter
    def pad_token(self, token: str) -> None:
        self._pad_id = self.convert_tokens_to_ids(token)

    @property
    def all_special_tokens(self) -> list[str]:
        """The texts of the tokens that only a chat template writes."""
        return list(self._tokenizer.special_tokens)

    @property
    def all_special_ids(self) -> list[int]:
        """Their ids."""
        return list(self._tokenizer.special_tokens.values())

    @property
    def bos_token(self) -> str:
        """Its text."""
        return self._tokenizer.bos_token

    @property
    def eos_token(self) -> str:
        """Its text."""
        return self._tokenizer.eos_token

    def encode(
        self, text: str, *, add_special_tokens: bool = True, split_special_tokens: bool | None = None
    ) -> list[int]:
        """The ids of a text, with the token that begins a sequence where the model has one.

        Special tokens are read in what a template wrote (`TemplateText`); in any other text, what looks like one stays
        text, unless `split_special_tokens=False` says that it is to be read as one.
        """
        if not isinstance(text, str):
            raise InvalidMessages(f"a text is expected, not {type(text).__name__}")
        if split_special_tokens is None and not isinstance(text, TemplateText):
            self._warn_of_tokens(text)
        if split_special_tokens or (split_special_tokens is None and not isinstance(text, TemplateText)):
            ids = self._tokenizer.encode(text)
            begins = self._tokenizer.adds_bos and add_special_tokens
            return [self._tokenizer.bos_id, *ids] if begins and self._tokenizer.bos_id is not None else ids
        return self._tokenizer.encode_prompt(RenderedPrompt(text, text.seams if isinstance(text, TemplateText) else ()))

    def _warn_of_tokens(self, text: str) -> None:
        found = next((token for token in self._tokenizer.special_tokens if len(token) > 1 and token in text), None)
        if found is not None:
            warnings.warn(
                f"the text holds {found!r}, which stays text and does not become a token",
                stacklevel=4,
            )

    def __call__(
        self,
        text: str | Sequence[str],
        *,
        add_special_tokens: bool = True,
        padding: bool | str = False,
        return_tensors: str | None = None,
        return_attention_mask: bool = True,
        split_special_tokens: bool | None = None,
    ) -> Encoding:
        """`input_ids` and `attention_mask` of a text, or of several."""
        texts = [text] if isinstance(text, str) else list(text)
        rows = [
            self.encode(one, add_special_tokens=add_special_tokens, split_special_tokens=split_special_tokens)
            for one in texts
        ]
        encoding = self._encoding(rows, padding=padding, return_tensors=return_tensors)
        if isinstance(text, str) and return_tensors is None:
            encoding = Encoding({name: value[0] for name, value in encoding.items()})
        if not return_attention_mask:
            del encoding["attention_mask"]
        return encoding

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """The id of a token by its text, such as "<|eot_id|>", or those of a list of them.

        Raises `InvalidOption` for a text that is no single token.
        """
        if not isinstance(tokens, str):
            return [self.convert_tokens_to_ids(token) for token in tokens]
        if tokens in self._tokenizer.special_tokens:
            return self._tokenizer.special_tokens[tokens]
        ids = self._tokenizer.encode_rest(tokens)
        if len(ids) != 1:
            raise InvalidOption(
                f"{tokens!r} is no single token of this model", hint="encode() gives the ids of a longer text"
            )
        return ids[0]

    def decode(self, token_ids: Any, *, skip_special_tokens: bool = False) -> str:
        """The text of token ids."""
        ids = token_ids.tolist() if hasattr(token_ids, "tolist") else token_ids
        return self._tokenizer.decode([ids] if isinstance(ids, int) else ids, skip_special=skip_special_tokens)

    def batch_decode(self, rows: Any, *, skip_special_tokens: bool = False) -> list[str]:
        """The texts of rows of token ids."""
        return [self.decode(row, skip_special_tokens=skip_special_tokens) for row in rows_of(rows, name="rows")]

    def apply_chat_template(
        self,
        conversation: Sequence[Any],
        tools: Sequence[ToolLike] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        chat_template: str | None = None,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        tokenize: bool = True,
        padding: bool | str = False,
        return_tensors: str | None = None,
        return_dict: bool = True,
        **variables: Any,
    ) -> Any:
        """A chat, or several, as the model was trained to read them: text, token ids, or `Encoding`.

        `tools` may be Python functions with type hints and a docstring. Further names are variables of the template.

        Raises `TemplateError` where the template refuses the chat, and `InvalidOption` where it would ignore `tools` or
        `documents`.
        """
        template = ChatTemplate.of(self._tokenizer, chat_template)
        is_batch = bool(conversation) and isinstance(conversation[0], (list, tuple))
        chats = list(conversation) if is_batch else [conversation]
        described = None if tools is None else schemas(tools)
        check_template(template.source, tools=described, documents=documents)
        prompts = [
            template.render(
                normalize(chat),
                tools=described,
                documents=documents,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
                variables=variables,
            )
            for chat in chats
        ]
        if not tokenize:
            texts = [TemplateText.of(prompt) for prompt in prompts]
            return texts if is_batch else texts[0]
        rows = [self._tokenizer.encode_prompt(prompt) for prompt in prompts]
        encoding = self._encoding(rows, padding=padding, return_tensors=return_tensors)
        if not is_batch and return_tensors is None:
            encoding = Encoding({name: value[0] for name, value in encoding.items()})
        return encoding if return_dict else encoding["input_ids"]

    def _encoding(self, rows: list[list[int]], *, padding: bool | str, return_tensors: str | None) -> Encoding:
        if padding not in (False, True, "longest", "do_not_pad"):
            raise InvalidOption(f"padding={padding!r} is impossible", hint="padding is True or False")
        if return_tensors not in (None, *_TENSORS):
            raise InvalidOption(f"return_tensors={return_tensors!r} is impossible", hint='it is "pt", or left out')
        on_the_left = self.padding_side == "left"
        mask = TokenRows([1] * len(row) for row in rows)
        ids = TokenRows(rows)
        if padding in (True, "longest"):
            ids = padded(rows, self.pad_token_id, on_the_left=on_the_left)
            mask = padded(mask, 0, on_the_left=on_the_left)
        encoding = Encoding(input_ids=ids, attention_mask=mask)
        return as_tensors(encoding) if return_tensors == "pt" else encoding


def check_template(source: str, *, tools: object, documents: object) -> None:
    """Raises `InvalidOption` where a chat template would leave tools or documents out without a word."""
    for name, value in (("tools", tools), ("documents", documents)):
        if value and name not in source:
            raise InvalidOption(
                f"this model's chat template does not read {name}: they would have no effect",
                hint=f"choose a model that was trained with {name}, or describe them in a message",
            )
