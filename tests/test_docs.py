"""What the documentation names exists, and its tables say what the source says."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from kaiwa.cli import main
from kaiwa.sampling import OPTIONS, Sampling
from kaiwa.terminal.commands import COMMANDS
from pages import PAGES, ROOT, check_table, code_blocks, markdown_table

CLI = ROOT / "docs" / "cli.md"
SOURCE = ROOT / "src" / "kaiwa"
LINK = re.compile(r"\]\((?!\w+:)([^)#]+)")
MODULE = re.compile(r"`(?:kaiwa\.)?([a-z_]+(?:\.[a-z_]+)+)`")


def test_table_of_options(rewrite: bool) -> None:
    defaults = Sampling().to_dict()
    rows = [
        (
            f"`{option.name}`",
            option.help,
            option.range,
            "none" if option.kind in ("strings", "biases") else f"{defaults[option.name]}",
        )
        for option in OPTIONS
    ]
    check_table(CLI, "options", markdown_table(("option", "meaning", "value", "default"), rows), rewrite=rewrite)


def test_table_of_chat_commands(rewrite: bool) -> None:
    rows = [(f"`!{command.name} {command.arguments}".rstrip() + "`", command.help) for command in COMMANDS]
    check_table(CLI, "commands", markdown_table(("command", "what it does"), rows), rewrite=rewrite)


@pytest.mark.parametrize("name", main.command_names())
def test_every_flag_is_documented(name: str) -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    parser = main.Parser(prog=name)
    importlib.import_module(f"kaiwa.cli.{name}").configure(parser)
    for flag in parser._option_string_actions:
        if flag.startswith("--") and flag != "--help":
            assert re.search(rf"{flag}\b", pages), f"no page says what {flag} of `kaiwa {name}` does"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_exist(page: Path) -> None:
    for name in MODULE.findall(page.read_text(encoding="utf-8")):
        if (SOURCE / name.split(".")[0]).is_dir():
            path = SOURCE.joinpath(*name.split("."))
            assert path.is_dir() or path.with_suffix(".py").exists(), f"there is no kaiwa.{name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for block in code_blocks(page, "sh"):
        assert set(re.findall(r"^make ([a-z]+)", block, re.MULTILINE)) <= targets
