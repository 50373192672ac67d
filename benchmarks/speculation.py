"""What guesses bring: the same answers with and without them, in turn, where a text quotes its prompt and where not.

python benchmarks/speculation.py
"""

from __future__ import annotations

import argparse
import time
from statistics import median

from kaiwa.runtime.llm import LLM

TEXT = """The library stood at the end of a street that nobody had paved. In the morning its windows were grey, and by
noon they held the whole sky: clouds, a crow, the wires between two poles. People came for the newspapers first, then
for the warmth, and some of them, after a winter or two, for the books. The librarian knew what each would ask before
they asked it. She said that there are only nine questions, and that the rest is spelling."""
QUOTING = f"Copy this text word by word:\n\n{TEXT}"
FREE = "Write a short story about a lighthouse keeper and a storm."
LEAST = {"quoting": 1.7, "free": 0.97}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", default="smollm2:135m")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--new-tokens", type=int, default=128)
    arguments = parser.parse_args()
    with (
        LLM(arguments.model, context_length=2048) as fast,
        LLM(arguments.model, context_length=2048, speculation=False) as plain,
    ):
        print(f"{'':10}{'without':>9}{'with':>9}{'ratio':>8}{'to reach':>10}   tokens per second")
        for name, question in (("quoting", QUOTING), ("free", FREE)):
            speeds: list[list[float]] = [[], []]
            for number in range(-1, arguments.runs):
                texts = set()
                for place, llm in enumerate((plain, fast)):
                    text, speed = answer(llm, question, num_new=arguments.new_tokens)
                    texts.add(text)
                    if number >= 0:
                        speeds[place].append(speed)
                assert len(texts) == 1, "a guess has changed the answer"
            without, with_guesses = map(median, speeds)
            ratio = with_guesses / without
            print(f"{name:10}{without:9.1f}{with_guesses:9.1f}{ratio:8.2f}{LEAST[name]:10.2f}")


def answer(llm: LLM, question: str, *, num_new: int) -> tuple[str, float]:
    """The text, and its tokens per second after the first as they arrive."""
    text, first_at = "", 0.0
    for event in llm.stream(question, do_sample=False, max_new_tokens=num_new):
        text += event.text
        first_at = first_at or (time.perf_counter() if event.text else 0.0)
    usage = event.usage  # type: ignore[union-attr]  # the last one is Finished
    return text, (usage.generated_tokens - 1) / (time.perf_counter() - first_at)


if __name__ == "__main__":
    main()
