"""Objects of responses, as the OpenAPI document describes them. The responses themselves are written by hand."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Described(BaseModel):
    """An object that the server gives."""

    # Built when somebody asks for the document.
    model_config = ConfigDict(defer_build=True)
