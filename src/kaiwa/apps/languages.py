"""Texts in several languages, and which of them a person is shown."""

from __future__ import annotations

from collections.abc import Mapping

Text = str | Mapping[str, str]
"""A text, or the same in several languages by their codes: `{"en": "Model", "ja": "モデル"}`."""


def in_language(text: Text, language: str) -> str:
    """The text in this language, such as "ja-JP"; the first of several where it is not among them."""
    if isinstance(text, str):
        return text
    return text.get(language.partition("-")[0].lower(), next(iter(text.values())))
