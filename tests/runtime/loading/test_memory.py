"""Free memory is what the machine has, or what any control group above the process leaves."""

from __future__ import annotations

from pathlib import Path

from kaiwa.runtime.loading.memory import available_bytes

GB = 1 << 30


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MACHINE = {"proc/meminfo": f"MemTotal: {8 * GB // 1024} kB\nMemAvailable:    {6 * GB // 1024} kB\nHugePages_Total: 0\n"}


def test_a_machine_without_limits(tmp_path: Path) -> None:
    assert available_bytes(write(tmp_path, MACHINE)) == 6 * GB


def test_a_container_of_version_two_leaves_less(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/system.slice/app"
    files = {
        **MACHINE,
        "proc/self/cgroup": "0::/system.slice/app\n",
        f"{group}/memory.max": f"{2 * GB}\n",
        f"{group}/memory.current": f"{GB}\n",
        f"{group}/memory.stat": f"anon 5\ninactive_file {GB // 2}\n",
    }
    assert available_bytes(write(tmp_path, files)) == 2 * GB - GB + GB // 2


def test_a_limit_higher_up_counts_too(tmp_path: Path) -> None:
    files = {
        **MACHINE,
        "proc/self/cgroup": "0::/pod/app\n",
        "sys/fs/cgroup/pod/app/memory.max": "max\n",
        "sys/fs/cgroup/pod/app/memory.current": "7\n",
        "sys/fs/cgroup/pod/memory.max": f"{GB}\n",
        "sys/fs/cgroup/pod/memory.current": f"{GB // 4}\n",
    }
    assert available_bytes(write(tmp_path, files)) == GB - GB // 4


def test_a_container_of_version_one(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/memory/docker/abc"
    files = {
        **MACHINE,
        "proc/self/cgroup": "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n",
        f"{group}/memory.limit_in_bytes": f"{GB}\n",
        f"{group}/memory.usage_in_bytes": f"{GB}\n",
        f"{group}/memory.stat": "total_inactive_file 1000\n",
    }
    assert available_bytes(write(tmp_path, files)) == 1000


def test_an_overdrawn_limit_is_zero_and_not_less(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": "1000\n",
        "sys/fs/cgroup/memory.current": "2000\n",
    }
    assert available_bytes(write(tmp_path, files)) == 0


def test_a_system_that_does_not_say(tmp_path: Path) -> None:
    assert available_bytes(tmp_path) is None


def test_this_machine_has_some() -> None:
    available = available_bytes()
    assert available is not None
    assert available > 1_000_000
