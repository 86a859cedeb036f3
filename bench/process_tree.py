"""A process with all its children: what they take of the processor and of memory."""

import psutil


def tree_of(pid: int) -> list[psutil.Process]:
    """A process and all below it that are there now."""
    top = psutil.Process(pid)
    return [top, *top.children(recursive=True)]


def tree_cpu_s(pid: int) -> float:
    """Processor time so far, of children that have ended too."""
    total = 0.0
    for one in tree_of(pid):
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def tree_pss_bytes(pid: int) -> int:
    """Memory now; pages that several share are counted once."""
    total = 0
    for one in tree_of(pid):
        try:
            total += one.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return total
