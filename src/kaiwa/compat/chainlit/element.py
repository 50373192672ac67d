"""`chainlit.element`."""

from __future__ import annotations

from kaiwa.apps.content.elements import Audio as Audio
from kaiwa.apps.content.elements import CustomElement as CustomElement
from kaiwa.apps.content.elements import Dataframe as Dataframe
from kaiwa.apps.content.elements import Element as Element
from kaiwa.apps.content.elements import File as File
from kaiwa.apps.content.elements import Image as Image
from kaiwa.apps.content.elements import Pdf as Pdf
from kaiwa.apps.content.elements import Plotly as Plotly
from kaiwa.apps.content.elements import Pyplot as Pyplot
from kaiwa.apps.content.elements import Text as Text
from kaiwa.apps.content.elements import Video as Video
