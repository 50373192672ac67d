"""Files go in, a table comes out: `kaiwa run reader.py`, and drop a text into the chat."""

from collections import Counter
from pathlib import Path

import kaiwa as kw


class Table:
    """Just enough of a data frame; pandas and polars work the same way."""

    def __init__(self, columns, rows):
        self.columns = columns
        self.rows = lambda: rows


@kw.step(type="tool")
def count_words(path):
    words = Counter(Path(path).read_text(errors="replace").lower().split())
    return dict(words.most_common(10))


@kw.on_message
def read(message):  # no async: this runs in a thread of its own
    if not message.elements:
        kw.run_sync(kw.Message("Send me a text file.").send())
    for file in message.elements:
        words = count_words(file.path)
        table = kw.Dataframe(Table(["word", "count"], list(words.items())), name=f"Words of {file.name}")
        kw.run_sync(kw.Message(f"The most frequent words of {file.name}:", elements=[table]).send())
