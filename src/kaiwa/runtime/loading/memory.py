"""How much memory this process may still take, and how much it ever took."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")


def available_bytes(root: Path = ROOT) -> int | None:
    """Bytes that can be taken without swapping, pages of cached files included; None where nobody tells.

    It is what the machine has, or what its containers leave. `root` is where the system's folders are, for tests.
    """
    limits = [limit for limit in (_of_machine(root), *_of_containers(root)) if limit is not None]
    return max(min(limits), 0) if limits else None


def peak_bytes() -> int:
    """The most memory that this process ever held, pages of mapped files included; 0 where the system does not say."""
    peak = _read_table(ROOT / "proc/self/status").get("VmHWM:")
    if peak is not None:
        return peak * 1024
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def resident_bytes() -> int:
    """The memory that this process holds now, mapped files included; the peak where the system only says that."""
    resident = _read_table(ROOT / "proc/self/status").get("VmRSS:")
    return peak_bytes() if resident is None else resident * 1024


def _of_machine(root: Path) -> int | None:
    available = _read_table(root / "proc/meminfo").get("MemAvailable:")
    if available is not None:
        return available * 1024
    if root != ROOT:
        return None
    if sys.platform == "win32":
        return _of_windows()
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):  # a system that does not say
        return None


def _of_windows() -> int | None:
    import ctypes

    class MemoryStatus(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ulong), ("load", ctypes.c_ulong)] + [
            (name, ctypes.c_ulonglong)
            for name in ("total", "available", "total_page", "available_page", "total_virtual", "available_virtual")
        ] + [("available_extended", ctypes.c_ulonglong)]  # fmt: skip

    status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
    is_known = getattr(ctypes, "windll").kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # noqa: B009
    return int(status.available) if is_known else None


def _of_containers(root: Path) -> Iterator[int | None]:
    """What each control group above this process leaves; a limit may stand at any of them."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            yield from _of_groups(root / "sys/fs/cgroup", group, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            folder = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            yield from _of_groups(folder, group, *names)


def _of_groups(mount: Path, group: str, limit: str, usage: str, reclaimable: str) -> Iterator[int | None]:
    own = mount / group.strip("/")
    for folder in (own, *own.parents):
        if not folder.is_relative_to(mount):
            return
        words = _read(folder / limit).strip(), _read(folder / usage).strip()
        if all(word.isdecimal() for word in words):
            cached = _read_table(folder / "memory.stat").get(reclaimable, 0)
            yield int(words[0]) - int(words[1]) + cached


def _read_table(path: Path) -> dict[str, int]:
    """The first two columns of a file such as `/proc/meminfo`."""
    rows = (line.split() for line in _read(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) >= 2 and row[1].isdecimal()}


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # another system, or one that keeps it to itself
        return ""
