"""Log lines for programs: `key=value`, or JSON, one line each, on standard error."""

from __future__ import annotations

import json
import logging
import time
from typing import Any, Literal

LogFormat = Literal["text", "json"]


class LineFormatter(logging.Formatter):
    """Writes a record's message and its `fields`."""

    def __init__(self, log_format: LogFormat) -> None:
        super().__init__()
        self._log_format = log_format

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if self._log_format == "json":
            return json.dumps(fields, ensure_ascii=False, default=str)
        return " ".join(f"{name}={_word(value)}" for name, value in fields.items())


def configure(log_format: LogFormat, *, level: int = logging.INFO) -> None:
    """Send what `kaiwa` and uvicorn log to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter(log_format))
    for name in ("kaiwa", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level if name == "kaiwa" else logging.WARNING)


def _word(value: object) -> str:
    text = str(value)
    return text if text and not set(text) & set(' "=\n') else json.dumps(text, ensure_ascii=False)
