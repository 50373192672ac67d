"""Write what transformers makes of text: token ids of the default model, and rendered conversations.

`make golden` runs this where transformers is; what changes is then reviewed like code.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from conversations import CONVERSATIONS, TOOLS
from kaiwa.weights import hub
from mixed_lines import mixed_lines
from transformers_text import render, smollm2_ids

GOLDEN = Path(__file__).parents[1] / "golden" / "text"


def write_token_ids(model_path: Path) -> None:
    """Write the ids of every mixed line, one after the other, and how many each line has."""
    ids = smollm2_ids(model_path, mixed_lines())
    joined = np.concatenate([np.array(line, dtype=np.uint16) for line in ids])
    np.savez_compressed(GOLDEN / "smollm2_ids.npz", ids=joined, lengths=[len(line) for line in ids])
    print(f"smollm2: {len(ids)} lines, {len(joined)} ids")


def write_rendered(template_path: Path) -> None:
    """Write every conversation, with and without tools, as one template renders it."""
    template = template_path.read_text(encoding="utf-8")
    rendered = {
        name: {
            "without tools": render(template, conversation),
            "with tools": render(template, conversation, tools=TOOLS),
            "no answer": render(template, conversation, add_generation_prompt=False),
        }
        for name, conversation in CONVERSATIONS.items()
    }
    path = GOLDEN / "rendered" / f"{template_path.stem}.json"
    path.write_text(json.dumps(rendered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{template_path.stem}: {sum(text is not None for shapes in rendered.values() for text in shapes.values())}")


if __name__ == "__main__":
    for template_path in sorted((GOLDEN / "templates").glob("*.jinja")):
        write_rendered(template_path)
    write_token_ids(Path(sys.argv[1]) if len(sys.argv) > 1 else hub.resolve("smollm2:135m"))
