"""How many threads pay: one for each processor core that this process may really use."""

from __future__ import annotations

import math
import os
from pathlib import Path

from kaiwa.errors import InvalidOption

MAX_THREADS = 512


def choose(requested: int | None = None) -> int:
    """The number of threads to use: `requested`, or what the machine, affinity and container allow.

    Raises `InvalidOption` for a number outside 1 to 512.
    """
    if requested is None:
        return max(1, min(_allowed_cores(), _container_quota(), MAX_THREADS))
    if not 1 <= requested <= MAX_THREADS:
        raise InvalidOption(
            f"threads={requested} is impossible",
            hint=f"threads must be from 1 to {MAX_THREADS}; this process may use {choose()}",
        )
    return requested


def _allowed_cores() -> int:
    """Physical cores in this process's affinity: two threads of one core only take its time from each other."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    processors = os.sched_getaffinity(0)
    cores = {_siblings(processor) for processor in processors}
    return len(cores)


def _siblings(processor: int) -> str:
    try:
        return Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(processor)


def _container_quota(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores that a container's time quota amounts to, rounded down; no limit where there is none."""
    try:  # cgroup v2: "<quota> <period>" or "max <period>", in microseconds
        quota, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (root / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return MAX_THREADS
    if quota in ("max", "-1"):
        return MAX_THREADS
    return max(1, math.floor(int(quota) / int(period)))
