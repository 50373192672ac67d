"""`chainlit.element`."""

from __future__ import annotations

from kaiwa.apps.elements import Audio as Audio
from kaiwa.apps.elements import CustomElement as CustomElement
from kaiwa.apps.elements import Dataframe as Dataframe
from kaiwa.apps.elements import Element as Element
from kaiwa.apps.elements import File as File
from kaiwa.apps.elements import Image as Image
from kaiwa.apps.elements import Pdf as Pdf
from kaiwa.apps.elements import Plotly as Plotly
from kaiwa.apps.elements import Pyplot as Pyplot
from kaiwa.apps.elements import Text as Text
from kaiwa.apps.elements import Video as Video
