"""Widgets: the controls of a chat's settings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kaiwa.apps.protocol.records import Record


class Choice(Record):
    """One of several values; `value` is what the app gets, `label` what people see."""

    value: str
    label: str


class _Widget(Record):
    id: str
    label: str
    tooltip: str = ""
    description: str = ""
    is_disabled: bool = False


class SwitchWidget(_Widget):
    """On or off."""

    kind: Literal["switch"] = "switch"
    initial: bool = False


class CheckboxWidget(_Widget):
    """Ticked or not."""

    kind: Literal["checkbox"] = "checkbox"
    initial: bool = False


class SliderWidget(_Widget):
    """A number within bounds."""

    kind: Literal["slider"] = "slider"
    initial: int | float
    min: int | float
    max: int | float
    step: int | float


class SelectWidget(_Widget):
    """One of several, in a list."""

    kind: Literal["select"] = "select"
    initial: str | None = None
    choices: tuple[Choice, ...]


class RadioWidget(_Widget):
    """One of several, all in view."""

    kind: Literal["radio"] = "radio"
    initial: str | None = None
    choices: tuple[Choice, ...]


class MultiSelectWidget(_Widget):
    """Some of several."""

    kind: Literal["multi_select"] = "multi_select"
    initial: tuple[str, ...] = ()
    choices: tuple[Choice, ...]


class TextWidget(_Widget):
    """Text, of one line or several."""

    kind: Literal["text"] = "text"
    initial: str = ""
    placeholder: str = ""
    is_multiline: bool = False


class NumberWidget(_Widget):
    """Any number, or none."""

    kind: Literal["number"] = "number"
    initial: int | float | None = None
    placeholder: str = ""


class TagsWidget(_Widget):
    """Words that a person types."""

    kind: Literal["tags"] = "tags"
    initial: tuple[str, ...] = ()


class DateWidget(_Widget):
    """A day (2026-11-30), or with `is_range` the first and the last of several."""

    kind: Literal["date"] = "date"
    initial: str | tuple[str, ...] | None = None
    is_range: bool = False
    min_date: str | None = None
    max_date: str | None = None
    placeholder: str = ""


Widget = Annotated[
    SwitchWidget
    | CheckboxWidget
    | SliderWidget
    | SelectWidget
    | RadioWidget
    | MultiSelectWidget
    | TextWidget
    | NumberWidget
    | TagsWidget
    | DateWidget,
    Field(discriminator="kind"),
]

SettingValue = bool | int | float | str | tuple[str, ...] | None


class Tab(Record):
    """Widgets under one heading; `label` is empty where an app has no tabs."""

    id: str
    label: str
    widgets: tuple[Widget, ...]
