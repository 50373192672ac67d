"""`chainlit.input_widget`."""

from __future__ import annotations

from kaiwa.apps.widgets import Checkbox as Checkbox
from kaiwa.apps.widgets import DatePicker as DatePicker
from kaiwa.apps.widgets import InputWidget as InputWidget
from kaiwa.apps.widgets import MultiSelect as MultiSelect
from kaiwa.apps.widgets import NumberInput as NumberInput
from kaiwa.apps.widgets import RadioGroup as RadioGroup
from kaiwa.apps.widgets import Select as Select
from kaiwa.apps.widgets import Slider as Slider
from kaiwa.apps.widgets import Switch as Switch
from kaiwa.apps.widgets import Tab as Tab
from kaiwa.apps.widgets import Tags as Tags
from kaiwa.apps.widgets import TextInput as TextInput
