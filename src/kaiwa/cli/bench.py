"""`kaiwa bench`: how fast a model is on this machine, or how good once it is quantized, as a table or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from kaiwa.cli.main import positive
from kaiwa.errors import InvalidOption

if TYPE_CHECKING:
    from kaiwa.runtime.measuring.bench import Measured, Report
    from kaiwa.runtime.measuring.quality import Quality, QualityReport

SUMMARY = "Measure a model's speed and memory here, or what quantizing costs."


def configure(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    from kaiwa.runtime.loading.loader import DEFAULT_MODEL
    from kaiwa.runtime.measuring.bench import PEERS
    from kaiwa.weights.quantize import RECIPES

    parser.add_argument(
        "model", nargs="?", default=DEFAULT_MODEL, metavar="MODEL", help=f"a name or path (default: {DEFAULT_MODEL})"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with all that was measured")
    parser.add_argument("--against", metavar="PEER", help=f"measure another runtime beside it: {', '.join(PEERS)}")
    parser.add_argument("--threads", metavar="N", type=positive, help="processor threads (default: as many as help)")
    parser.add_argument(
        "--quantization", metavar="NAME", help=f"round the weights as they load: {', '.join(RECIPES)} (default: no)"
    )
    parser.add_argument(
        "--quality", action="store_true", help="instead compare predictions on a text with those of unquantized weights"
    )
    parser.add_argument(
        "--reference", metavar="MODEL", help="the unquantized weights, where MODEL's own are quantized already"
    )
    parser.add_argument("--runs", metavar="N", type=positive, default=5, help="take medians of N runs (default: 5)")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    report, words = _compare(arguments) if arguments.quality else _measure(arguments)
    print(json.dumps(report, ensure_ascii=False, indent=2) if arguments.json else words)
    return 0


def _measure(arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """The report for programs, and for people."""
    from kaiwa.runtime.measuring.bench import measure

    if arguments.reference is not None:
        raise InvalidOption("--reference is for --quality only", hint="add --quality, or leave --reference out")
    report = measure(
        arguments.model,
        threads=arguments.threads,
        quantization=arguments.quantization,
        against=arguments.against,
        runs=arguments.runs,
        on_run=_say_progress,
    )
    return report.to_dict(), table(report)


def _compare(arguments: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """The report for programs, and for people."""
    from kaiwa.runtime.measuring.quality import compare

    if arguments.against is not None:
        raise InvalidOption("--quality measures no speed beside others", hint="leave --quality or --against out")
    report = compare(
        arguments.model,
        quantization=arguments.quantization,
        reference=arguments.reference,
        threads=arguments.threads,
        on_run=_say_progress,
    )
    return report.to_dict(), quality_table(report)


def _say_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        ending = "\r\x1b[K" if done == total else ""
        print(f"\rrun {done} of {total}{ending}", end="", file=sys.stderr, flush=True)


def table(report: Report) -> str:
    """What was measured, for people: a column for each runtime, and how they compare."""
    from kaiwa.terminal import words
    from kaiwa.terminal.table import aligned

    def column(measured: Measured) -> list[str]:
        return [
            measured.name,
            f"{measured.load_s:.2f} s",
            f"{measured.prompt_tokens_per_s:,.0f} tokens/s",
            f"{measured.decode_tokens_per_s:,.0f} tokens/s",
            words.in_bytes(measured.peak_bytes),
        ]

    names = ["", "load", f"prompt, {report.prompt_tokens} tokens", f"answer, {report.new_tokens} tokens", "peak memory"]
    columns = [names, column(report.kaiwa)]
    if report.peer:
        columns += [column(report.peer), ["", "", f"{report.prompt_ratio:.2f} x", f"{report.decode_ratio:.2f} x", ""]]
    bandwidth = f"{words.in_bytes(round(report.bandwidth_bytes_per_s))}/s"
    return "\n".join(
        [
            f"{report.card.name} ({words.kind(report.card)}), {report.card.engine}, median of {report.runs} runs",
            "",
            *aligned(columns),
            "",
            f"The first token came {report.first_token_s:.2f} s after a question of ten tokens.",
            f"Memory reads {bandwidth}, which allows {report.decode_limit_tokens_per_s:,.0f} tokens/s: "
            f"the answer reaches {100 * report.limit_share:.0f} % of that.",
        ]
    )


def quality_table(report: QualityReport) -> str:
    """What quantizing costs, for people: a column for each model."""
    from kaiwa.terminal import words
    from kaiwa.terminal.table import aligned

    def column(quality: Quality, *, is_reference: bool = False) -> list[str]:
        against = ["", "", ""]
        if not is_reference:
            against = [f"{quality.mean_kl:.4f}", f"{quality.max_kl:.2f}", f"{100 * quality.same_top:.1f} %"]
        size = words.in_bytes(quality.weights_bytes)
        return [quality.name, quality.number_format, size, f"{quality.perplexity:.2f}", *against]

    names = ["", "most weights", "memory", "perplexity", "mean KL, nats", "max KL", "same first choice"]
    columns = [names, column(report.reference, is_reference=True), *map(column, report.compared)]
    return "\n".join(
        [f"{report.num_tokens:,} tokens of English and code, beside unquantized weights", "", *aligned(columns)]
    )
