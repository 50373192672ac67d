"""docs/apps.md says what is so: its table is the code's, and its examples run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaiwa.apps.app_file import load_app
from kaiwa.apps.hooks import HOOKS
from kaiwa.errors import InvalidApp
from pages import ROOT, check_table, code_blocks, markdown_table

PAGE = ROOT / "docs" / "apps.md"
EXAMPLES = sorted((ROOT / "examples" / "apps").glob("*.py"))


def test_table_of_hooks(rewrite: bool) -> None:
    rows = []
    for hook in HOOKS:
        name = f"{hook.name}(name)" if hook.is_named else hook.name
        rows.append((f"`{name}`", f"`({', '.join(hook.parameters)})`", hook.help))
    check_table(PAGE, "hooks", markdown_table(("hook", "arguments", "called when, or asked"), rows), rewrite=rewrite)


@pytest.mark.parametrize("number", range(len(code_blocks(PAGE, "python"))))
def test_the_examples_of_the_page_are_apps(number: int, tmp_path: Path) -> None:
    path = tmp_path / f"example_{number}.py"
    path.write_text(code_blocks(PAGE, "python")[number], encoding="utf-8")
    assert load_app(path).hooks


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_loads(path: Path) -> None:
    try:
        assert load_app(path).hooks.has("on_message")
    except InvalidApp as error:
        pytest.fail(str(error))
