"""Ending a tree from another terminal, by a signal to the supervisor that holds its directory."""

import signal

from penstock.errors import CommandError
from penstock.platform.child import send, wait_until
from penstock.platform.directory import PlatformDirectory


def end_tree(directory: PlatformDirectory, *, timeout_s: float) -> bool:
    """Stop what runs there, and wait until the last process has gone; whether something ran.

    The lock says that there is a tree, and the state whose process it is; both together keep a
    number that another process was given since from being asked to stop.
    """
    if not directory.is_held():
        return False
    wait_until(lambda: directory.state() is not None or not directory.is_held(), timeout_s=5)
    state = directory.state()
    if state is None:
        return directory.is_held() and _outlasts(directory, timeout_s)
    if not send(state.supervisor, signal.SIGTERM):
        for identity in state.identities:  # Their supervisor was killed.
            send(identity, signal.SIGTERM)
    return _outlasts(directory, timeout_s)


def _outlasts(directory: PlatformDirectory, timeout_s: float) -> bool:
    if not wait_until(lambda: not directory.is_held(), timeout_s=timeout_s):
        raise CommandError(
            f"What runs in {directory.path} did not stop within {timeout_s:g} s; its logs are in "
            f"{directory.path / 'logs'}."
        )
    return True
