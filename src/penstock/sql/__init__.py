"""Streaming SQL: ksqlDB's language.

`connect(url)` gives a connection to a SQL service: statements, queries as rows, inserts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.sql.client.connection import connect

__all__ = ["connect"]


def __getattr__(name: str) -> Any:
    """The client is loaded when it is asked for: the language does without sockets."""
    if name == "connect":
        return import_module("penstock.sql.client.connection").connect
    raise AttributeError(name)
