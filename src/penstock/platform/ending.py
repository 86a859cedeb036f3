"""Ending a tree from another terminal, by a signal to the supervisor that holds its directory."""

import signal

from penstock.errors import CommandError
from penstock.platform.child import is_alive, send, wait_until
from penstock.platform.directory import PlatformDirectory

_GLANCE_S = 5.0  # For a supervisor that is just starting to say who it is.


def end_tree(directory: PlatformDirectory, *, timeout_s: float) -> bool:
    """Stop what runs there, and wait until the last process has gone; whether something ran.

    The lock says that there is a tree, and the state whose process it is; both together keep a
    number that another process was given since from being asked to stop.
    """
    if not directory.is_held():
        return False
    wait_until(
        lambda: directory.state() is not None or not directory.is_held(), timeout_s=_GLANCE_S
    )
    state = directory.state()
    identities = () if state is None else (state.supervisor, *state.identities)
    if state is not None and not send(state.supervisor, signal.SIGTERM):
        for identity in state.identities:  # Their supervisor was killed.
            send(identity, signal.SIGTERM)

    def has_ended() -> bool:
        return not directory.is_held() and not any(map(is_alive, identities))

    if not wait_until(has_ended, timeout_s=timeout_s):
        raise CommandError(
            f"What runs in {directory.path} did not stop within {timeout_s:g} s; its logs are in "
            f"{directory.path / 'logs'}."
        )
    return True
