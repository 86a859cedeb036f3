"""Processes below ours: they end with us, stop in good order, and their ends are told.

Used by whoever runs several servers from one command. A child is in a session of its own, so a
Ctrl-C in the terminal reaches its parent alone, which then stops them in the right order.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.errors import CommandError
from penstock.platform.state import ProcessIdentity

_PR_SET_PDEATHSIG = 1
# Looked up here, because between fork and exec no lock may be taken.
_PRCTL = getattr(ctypes.CDLL(None), "prctl", None)
_LOOK_S = 0.02
_LINES_SHOWN = 8
_TAIL_BYTES = 16_384
_LOG_BYTES_MAX = 32 << 20


def penstock_command(*words: str) -> list[str]:
    """How to run a command of ours; nothing in the current directory can stand in its way."""
    return [sys.executable, "-P", "-m", "penstock.cli.main", *words]


def start_process(
    command: Sequence[str], log: Path, *, keep_open: Sequence[int] = ()
) -> "subprocess.Popen[bytes]":
    """A process that prints to the log, and is told to stop when the calling thread is no more.

    `keep_open` are descriptors that it inherits.
    """
    ours = os.getpid()
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        _set_aside_when_large(log)
        with log.open("ab") as out:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=tuple(keep_open),
                preexec_fn=lambda: _end_with_parent(ours),
            )
    except OSError as error:
        reason = error.strerror or error
        raise CommandError(
            f"{command[0]} cannot be started with its log {log}: {reason}"
        ) from error


def end_processes(
    processes: Sequence["subprocess.Popen[bytes]"],
    *,
    timeout_s: float,
    hurry: threading.Event | None = None,
) -> list["subprocess.Popen[bytes]"]:
    """Ask all to stop and wait; those that had to be killed, after the time or in a hurry."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    give_up_s = time.monotonic() + timeout_s
    pause = time.sleep if hurry is None else hurry.wait
    while any(process.poll() is None for process in processes):
        if time.monotonic() > give_up_s or (hurry is not None and hurry.is_set()):
            break
        pause(_LOOK_S)
    left = [process for process in processes if process.poll() is None]
    for process in left:
        process.kill()
        process.wait()
    return left


def how_ended(code: int) -> str:
    """An end in words, from the code that Popen gives."""
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was ended by signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"was ended by signal {-code}"


def end_of(log: Path, *, since: int = 0) -> str:
    """The last it printed from a position on, without the settings that every start prints."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(since if since <= size else 0, size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    shown = [line for line in lines if line.strip() and not line.startswith("\t")]
    return "\n".join(shown[-_LINES_SHOWN:])


def identity_of(pid: int) -> ProcessIdentity:
    """Who a process is, to be known again by."""
    return ProcessIdentity(pid=pid, born=_born(pid) or 0)


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether that very process still runs."""
    if identity.born:
        return _born(identity.pid) == identity.born
    return _signal(identity.pid, 0)


def send(identity: ProcessIdentity, number: int) -> bool:
    """A signal to that very process and to no other; whether it was there."""
    return is_alive(identity) and _signal(identity.pid, number)


def memory_bytes(pid: int) -> int | None:
    """What a process holds of the machine's memory; None where that cannot be told."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    sizes = [line.split()[1] for line in text.splitlines() if line.startswith("VmRSS:")]
    return int(sizes[0]) * 1024 if sizes else None


def cores() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def machine_memory_bytes() -> int:
    """The memory of the machine; 0 where that cannot be told."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0


def wait_until(
    is_true: Callable[[], bool], *, timeout_s: float, stop: threading.Event | None = None
) -> bool:
    """Look again and again; False when the time was over, or the stop came, before it was true."""
    stop = stop or threading.Event()
    give_up_s = time.monotonic() + timeout_s
    while not is_true():
        if stop.wait(_LOOK_S) or time.monotonic() > give_up_s:
            return False
    return True


def _end_with_parent(parent: int) -> None:
    """Have the kernel send SIGTERM when the parent is no more; systems without that do without."""
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)  # It went before the kernel knew.


def _set_aside_when_large(log: Path) -> None:
    if log.exists() and log.stat().st_size > _LOG_BYTES_MAX:
        log.replace(log.with_name(f"{log.name}.1"))


def _born(pid: int) -> int | None:
    """When a process began; None if there is none, or only what is left of one that ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def _signal(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise CommandError(f"The process {pid} belongs to another user.") from error
    return True
