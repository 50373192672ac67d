"""The watch for what tests leave behind, on tests that leave something behind."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

LEAKS = {
    "threads left running: forgotten": """
        import threading, time
        def test_it():
            threading.Thread(target=time.sleep, args=(4,), name="forgotten", daemon=True).start()
    """,
    "files left open: ": """
        kept = []
        def test_it(tmp_path):
            kept.append((tmp_path / "forgotten.txt").open("w"))
    """,
    "tiny.gguf": """
        import mmap
        kept = []
        def test_it(tmp_path):
            path = tmp_path / "tiny.gguf"
            path.write_bytes(b"GGUF")
            with path.open("rb") as file:
                kept.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    """,
}


@pytest.mark.parametrize("complaint", LEAKS)
def test_a_leak_fails_the_test(complaint: str, pytester: pytest.Pytester) -> None:
    tests = Path(__file__).parent
    pytester.makeconftest((tests / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(LEAKS[complaint])
    outcome = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-o", f"pythonpath={tests}")
    outcome.assert_outcomes(passed=1, errors=1)
    assert complaint in outcome.stdout.str()
