"""Waiting for the controller's office to be vacant; taking it is `Controller.elect`."""

from penstock.cluster import znodes
from penstock.meta.store import Change, MetaStore, SessionLost, WatchKind


async def await_office(store: MetaStore) -> None:
    """Return when nobody is the controller. Raises SessionLost when the session is over."""
    while True:
        changed = await store.watch_once(znodes.CONTROLLER, WatchKind.DATA)
        try:
            (office,) = await store.multi_get([znodes.CONTROLLER])
            if office is None:
                return
            event = await changed
        finally:
            changed.cancel()
        if event.change is Change.SESSION_LOST:
            raise SessionLost("the session ended while waiting for the controller's office")
