"""Libraries that a connector needs and Penstock does not bring by itself: are they here?

A connector names them in `libraries`: what is imported, and what to install for it.

    libraries = {"paho.mqtt": "paho-mqtt"}

The validation of a configuration tells what is missing, with the command that mends it. So a
connector's module must load without them: it imports them where a task starts.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

_OURS = "penstock.connect.connectors."
_EXTRA = "'penstock[connectors]'"


def missing_libraries(connector: Any) -> list[str]:
    """A sentence for each library of a connector's class that cannot be imported here."""
    named: Mapping[str, str] = getattr(connector, "libraries", {})
    is_ours = str(connector.__module__).startswith(_OURS)
    return [
        _sentence(package, _EXTRA if is_ours else package)
        for module, package in named.items()
        if not _is_there(module)
    ]


def missing_library(module: str) -> str | None:
    """A sentence for a library that one of ours needs for some settings; None: it is here."""
    return None if _is_there(module) else _sentence(module, _EXTRA)


def _sentence(package: str, installed: str) -> str:
    return (
        f"The connector needs {package}, which is not installed here. Run: pip install {installed}"
    )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False  # Not even the package around it is there.
