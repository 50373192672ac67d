"""Input widgets: the controls that an app's settings are made of. Names and arguments are Chainlit's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, ClassVar, Literal, cast

from kaiwa.apps.protocol import widgets as records
from kaiwa.apps.protocol.widgets import Choice, SettingValue
from kaiwa.errors import InvalidOption


class InputWidget:
    """A control with an `id`, under which its value is found, and a `label`."""

    kind: ClassVar[type[Any]]
    """What pages know it as."""

    def __init__(
        self,
        id: str,
        label: str,
        initial: Any = None,
        tooltip: str | None = None,
        description: str | None = None,
        disabled: bool = False,
    ) -> None:
        if not id or not label:
            raise InvalidOption(f"a widget needs an id and a label, not {id!r} and {label!r}")
        self.id = id
        self.label = label
        self.initial = initial
        self._fields: dict[str, Any] = {
            "id": id,
            "label": label,
            "tooltip": tooltip or "",
            "description": description or "",
            "is_disabled": disabled,
        }

    def record(self) -> records.Widget:
        """As pages know it."""
        given = {} if self.initial is None else {"initial": self.initial}
        return cast(records.Widget, self.kind(**given, **self._fields))


class Switch(InputWidget):
    """On or off."""

    kind = records.SwitchWidget


class Checkbox(InputWidget):
    """Ticked or not."""

    kind = records.CheckboxWidget


class Slider(InputWidget):
    """A number from `min` to `max`, in steps."""

    kind = records.SliderWidget

    def __init__(
        self,
        id: str,
        label: str,
        initial: float = 0,
        min: float = 0,
        max: float = 10,
        step: float = 1,
        **options: Any,
    ) -> None:
        super().__init__(id, label, initial, **options)
        if not min <= initial <= max or step <= 0:
            raise InvalidOption(
                f"the slider {id!r} begins at {initial}, between {min} and {max}, in steps of {step}",
                hint="initial must be within min and max, and step above 0",
            )
        self._fields |= {"min": min, "max": max, "step": step}


class TextInput(InputWidget):
    """Text, of one line or several."""

    kind = records.TextWidget

    def __init__(
        self,
        id: str,
        label: str,
        initial: str | None = None,
        placeholder: str | None = None,
        multiline: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(id, label, initial or "", **options)
        self._fields |= {"placeholder": placeholder or "", "is_multiline": multiline}


class NumberInput(InputWidget):
    """A number, or none."""

    kind = records.NumberWidget

    def __init__(
        self, id: str, label: str, initial: float | None = None, placeholder: str | None = None, **options: Any
    ) -> None:
        super().__init__(id, label, initial, **options)
        self._fields["placeholder"] = placeholder or ""


class Tags(InputWidget):
    """Words that a person types."""

    kind = records.TagsWidget

    def __init__(self, id: str, label: str, initial: Sequence[str] | None = None, **options: Any) -> None:
        super().__init__(id, label, tuple(initial or ()), **options)


class _Choosing(InputWidget):
    """One of several: `values`, or `items` from labels to values; and which at first, by value or by index."""

    def __init__(
        self,
        id: str,
        label: str,
        values: Sequence[str] | None = None,
        items: Mapping[str, str] | None = None,
        initial_value: str | None = None,
        initial_index: int | None = None,
        initial: str | None = None,
        **options: Any,
    ) -> None:
        if (values is None) == (items is None):
            raise InvalidOption(f"the widget {id!r} needs either values or items")
        labelled = items if items is not None else {value: value for value in values or ()}
        known = list(labelled.values())
        if initial_index is not None:
            if not 0 <= initial_index < len(known):
                raise InvalidOption(f"the widget {id!r} has {len(known)} choices, and none at {initial_index}")
            initial = known[initial_index]
        initial = initial_value if initial_value is not None else initial
        if initial is not None and initial not in known:
            raise InvalidOption(f"the widget {id!r} has no choice {initial!r}", hint=f"it has {', '.join(known)}")
        super().__init__(id, label, initial, **options)
        self._fields["choices"] = _choices(labelled)


class Select(_Choosing):
    """One of several, in a list."""

    kind = records.SelectWidget


class RadioGroup(_Choosing):
    """One of several, all in view."""

    kind = records.RadioWidget


class MultiSelect(InputWidget):
    """Some of several: `values`, or `items` from labels to values."""

    kind = records.MultiSelectWidget

    def __init__(
        self,
        id: str,
        label: str,
        values: Sequence[str] | None = None,
        items: Mapping[str, str] | None = None,
        initial: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        if (values is None) == (items is None):
            raise InvalidOption(f"the widget {id!r} needs either values or items")
        labelled = items if items is not None else {value: value for value in values or ()}
        super().__init__(id, label, tuple(initial or ()), **options)
        self._fields["choices"] = _choices(labelled)


class DatePicker(InputWidget):
    """A day, or with the mode "range" the first and the last of several. Values are like "2026-11-30"."""

    kind = records.DateWidget

    def __init__(
        self,
        id: str,
        label: str,
        initial: str | date | Sequence[str | date] | None = None,
        mode: Literal["single", "range"] = "single",
        min_date: str | date | None = None,
        max_date: str | date | None = None,
        placeholder: str | None = None,
        **options: Any,
    ) -> None:
        days = initial if initial is None or isinstance(initial, str | date) else tuple(_day(day) for day in initial)
        super().__init__(id, label, _day(days) if isinstance(days, str | date) else days, **options)
        self._fields |= {
            "is_range": mode == "range",
            "min_date": None if min_date is None else _day(min_date),
            "max_date": None if max_date is None else _day(max_date),
            "placeholder": placeholder or "",
        }


class Tab:
    """Widgets under one heading."""

    def __init__(self, id: str, label: str, inputs: Sequence[InputWidget] = ()) -> None:
        self.id = id
        self.label = label
        self.inputs = list(inputs)

    def record(self) -> records.Tab:
        """As pages know it."""
        return records.Tab(id=self.id, label=self.label, widgets=tuple(widget.record() for widget in self.inputs))


def _choices(labelled: Mapping[str, str]) -> tuple[Choice, ...]:
    return tuple(Choice(value=value, label=text) for text, value in labelled.items())


def _day(day: str | date) -> str:
    try:
        return (date.fromisoformat(day) if isinstance(day, str) else day).isoformat()[:10]
    except ValueError as error:
        raise InvalidOption(f"{day!r} is no day", hint='write it like "2026-11-30"') from error


def fits(widget: records.Widget, value: SettingValue) -> bool:
    """Whether a page may set a widget to this value."""
    match widget:
        case records.SwitchWidget() | records.CheckboxWidget():
            return isinstance(value, bool)
        case records.SliderWidget(min=low, max=high):
            return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
        case records.NumberWidget():
            return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        case records.SelectWidget(choices=choices) | records.RadioWidget(choices=choices):
            return value is None or value in {choice.value for choice in choices}
        case records.MultiSelectWidget(choices=choices):
            return isinstance(value, tuple) and set(value) <= {choice.value for choice in choices}
        case records.TextWidget():
            return isinstance(value, str)
        case records.TagsWidget():
            return isinstance(value, tuple)
        case records.DateWidget(is_range=is_range):
            return value is None or isinstance(value, tuple if is_range else str)
