"""Functions of a user's own files travel to the workers by value: no worker has the files."""

from collections.abc import Iterable
from types import ModuleType


def carry_by_value(modules: Iterable[ModuleType]) -> None:
    """From now on, what these modules define is pickled whole; doing it again is harmless."""
    from pyspark.cloudpickle import register_pickle_by_value

    for module in modules:
        if module.__name__ != "__main__":
            register_pickle_by_value(module)  # type: ignore[no-untyped-call]
