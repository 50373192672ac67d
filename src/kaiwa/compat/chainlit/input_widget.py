"""`chainlit.input_widget`."""

from __future__ import annotations

from kaiwa.apps.content.widgets import Checkbox as Checkbox
from kaiwa.apps.content.widgets import DatePicker as DatePicker
from kaiwa.apps.content.widgets import InputWidget as InputWidget
from kaiwa.apps.content.widgets import MultiSelect as MultiSelect
from kaiwa.apps.content.widgets import NumberInput as NumberInput
from kaiwa.apps.content.widgets import RadioGroup as RadioGroup
from kaiwa.apps.content.widgets import Select as Select
from kaiwa.apps.content.widgets import Slider as Slider
from kaiwa.apps.content.widgets import Switch as Switch
from kaiwa.apps.content.widgets import Tab as Tab
from kaiwa.apps.content.widgets import Tags as Tags
from kaiwa.apps.content.widgets import TextInput as TextInput
