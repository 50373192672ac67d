"""The house keeps its shape: who may import whom, what `import kaiwa` costs, and which names are public."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import kaiwa

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

# The table of docs/architecture.md. Imports point to a lower level, or stay inside their own package.
LEVELS = {
    "errors": 0,
    "messages": 0,
    "events": 0,
    "sampling": 0,
    "paths": 0,
    "extras": 0,
    "closing": 0,
    "weights": 1,
    "text": 1,
    "chat": 1,
    "engines": 2,
    "runtime": 3,
    "server": 4,
    "terminal": 4,
    "apps": 4,
    "compat": 5,
    "ui": 5,
    "cli": 6,
}

# Who may use a package from PyPI. What is in neither table is used nowhere, numpy above all.
THIRD_PARTY = {
    "httpx2": ("chat", "weights", "apps"),
    "huggingface_hub": ("weights",),
    "jinja2": ("text",),
    "llguidance": ("text",),
    "markdown_it": ("terminal",),
    "pydantic": ("apps", "server"),
    "pydantic_core": ("server",),
    "tokenizers": ("text",),
    "prompt_toolkit": ("terminal",),
    "rich": ("terminal", "cli"),
    "yaml": ("terminal",),
    "starlette": ("server", "apps"),
    "uvicorn": ("server", "apps"),
    "sqlalchemy": ("apps",),
    "alembic": ("apps",),
}
OPTIONAL = {
    "torch": ("compat", "engines"),
    "transformers": ("engines",),
    "llama_cpp": ("runtime",),
    "xllamacpp": ("engines", "runtime"),
}

PUBLIC_NAMES = [
    "Action",
    "App",
    "AskActionMessage",
    "AskElementMessage",
    "AskFileMessage",
    "AskFileResponse",
    "AskUserMessage",
    "Audio",
    "AutoModelForCausalLM",
    "AutoTokenizer",
    "BitsAndBytesConfig",
    "ChatProfile",
    "ChatSettings",
    "Checkbox",
    "CopilotFunction",
    "CustomElement",
    "Dataframe",
    "DatePicker",
    "Element",
    "ElementSidebar",
    "ErrorMessage",
    "Event",
    "Feedback",
    "File",
    "Finished",
    "GenerationConfig",
    "Image",
    "LLM",
    "Message",
    "Mode",
    "ModeOption",
    "Model",
    "MultiSelect",
    "NumberInput",
    "Pdf",
    "Plotly",
    "Pyplot",
    "RadioGroup",
    "Reply",
    "Sampling",
    "Select",
    "Slider",
    "Starter",
    "StarterCategory",
    "Step",
    "Switch",
    "Tab",
    "Tags",
    "Task",
    "TaskList",
    "TaskStatus",
    "Text",
    "TextDelta",
    "TextInput",
    "TextIteratorStreamer",
    "TextStreamer",
    "Uploads",
    "Usage",
    "User",
    "Video",
    "action_callback",
    "arun_tools",
    "author_rename",
    "cache",
    "chat_context",
    "context",
    "data_layer",
    "errors",
    "header_auth_callback",
    "make_async",
    "oauth_callback",
    "on_app_shutdown",
    "on_app_startup",
    "on_chat_end",
    "on_chat_resume",
    "on_chat_start",
    "on_feedback",
    "on_logout",
    "on_message",
    "on_settings_edit",
    "on_settings_update",
    "on_stop",
    "on_window_message",
    "password_auth_callback",
    "pipeline",
    "reply",
    "run_sync",
    "run_tools",
    "send_window_message",
    "set_chat_profiles",
    "set_starter_categories",
    "set_starters",
    "sleep",
    "step",
    "user_session",
]
MAX_IMPORT_S = 0.060
MAX_FILE_LINES = 600


def name_of(path: Path) -> str:
    """The dotted name of a module's file."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


def package_of(module: str) -> str:
    """The part of Kaiwa that a module belongs to: "weights" for kaiwa.weights.gguf, "" for kaiwa itself."""
    return module.split(".")[1] if "." in module else ""


def parse(module: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def imports_of(module: str) -> Iterator[str]:
    """All that a module imports, in functions and for type checkers too."""
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from names_of(module, node)


def names_of(module: str, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """What one statement imports: modules, also where it is written `from package import module`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    assert node.level == 0, f"{module} imports relatively"
    for alias in node.names:
        inner = f"{node.module}.{alias.name}"
        yield inner if inner in MODULES else str(node.module)


def own_imports_of(module: str) -> set[str]:
    """What a module imports of Kaiwa, except Kaiwa's own name and version."""
    return {name for name in imports_of(module) if name.startswith("kaiwa.")}


def inner_modules() -> list[str]:
    """All but `kaiwa` itself, which stands outside the table: it names everything and loads it on demand."""
    return [module for module in MODULES if module != "kaiwa"]


def test_every_part_of_the_house_has_a_level() -> None:
    assert {package_of(module) for module in inner_modules()} <= set(LEVELS)


@pytest.mark.parametrize("module", inner_modules())
def test_imports_point_down(module: str) -> None:
    here = package_of(module)
    for name in own_imports_of(module):
        there = package_of(name)
        assert here == there or LEVELS[there] < LEVELS[here] or LEVELS[here] == LEVELS[there] == 0, (
            f"{module} (level {LEVELS[here]}) imports {name} (level {LEVELS[there]})"
        )


def test_imports_have_no_cycle() -> None:
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, f"a cycle: {' -> '.join((*path[path.index(module) :], module))}"
        if module in done:
            return
        for name in own_imports_of(module) & MODULES.keys() - {module}:
            visit(name, (*path, module))
        done.add(module)

    for module in inner_modules():
        visit(module, ())


@pytest.mark.parametrize("module", MODULES)
def test_packages_from_outside_stay_in_their_rooms(module: str) -> None:
    for name in imports_of(module):
        package = name.partition(".")[0]
        if package != "kaiwa" and package not in sys.stdlib_module_names:
            assert package_of(module) in (THIRD_PARTY | OPTIONAL).get(package, ()), f"{module} imports {name}"


def test_packages_from_outside_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[^\w.-]", requirement)[0].lower() for requirement in project["dependencies"]}
    distributions = packages_distributions()
    for package in THIRD_PARTY:
        assert declared & {name.lower() for name in distributions[package]}, f"{package} is not in pyproject.toml"


@pytest.mark.parametrize("module", MODULES)
def test_optional_packages_are_imported_in_functions(module: str) -> None:
    for node in parse(module).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert not set(OPTIONAL) & {name.partition(".")[0] for name in names_of(module, node)}


def test_import_of_kaiwa_loads_the_standard_library_only() -> None:
    script = "import sys; before = set(sys.modules); import kaiwa; print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    outside = {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names}
    assert outside == {"kaiwa"}


def test_import_of_kaiwa_is_cheap() -> None:
    def measure_s() -> float:
        command = [sys.executable, "-X", "importtime", "-c", "import kaiwa"]
        report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        (cumulative_us,) = re.findall(r"\| +(\d+) \| kaiwa$", report, re.MULTILINE)
        return int(cumulative_us) / 1e6

    # The best of five: what other programs take from this machine says nothing of ours.
    assert min(measure_s() for _ in range(5)) < MAX_IMPORT_S


def test_public_names_are_pinned() -> None:
    assert kaiwa.__all__ == PUBLIC_NAMES
    assert dir(kaiwa) == PUBLIC_NAMES
    for name in PUBLIC_NAMES:
        assert getattr(kaiwa, name) is not None


def test_type_checkers_see_the_public_names() -> None:
    (block,) = (node for node in parse("kaiwa").body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    seen = {
        alias.asname: statement.module
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert seen == {**kaiwa._PUBLIC, "errors": "kaiwa"}


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(AttributeError, match="did you mean 'LLM'"):
        kaiwa.LMM  # noqa: B018 - the look-up is the test


@pytest.mark.parametrize("folder", ["src", "native", "tests", "benchmarks", "examples"])
def test_files_hold_one_idea(folder: str) -> None:
    long = {
        str(path.relative_to(ROOT)): num_lines
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".cpp", ".h")
        and (num_lines := len(path.read_text(encoding="utf-8").splitlines())) > MAX_FILE_LINES
    }
    assert not long, f"files past {MAX_FILE_LINES} lines hold a second idea: {long}"


def test_the_architecture_page_draws_the_same_table() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawn = {
        name: int(level)
        for names, level in re.findall(r"^  ([a-z ]+?) +(\d)(?:  |$)", page, re.MULTILINE)
        for name in names.split()
    }
    built = {package_of(module) for module in inner_modules()}
    assert drawn == {name: level for name, level in LEVELS.items() if name in built}
