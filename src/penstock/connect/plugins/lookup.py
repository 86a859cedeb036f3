"""Plug-ins by name: the ones of the house, and those that installed packages offer.

A package offers one by an entry point of the group of its kind, under the name it is to have:

    [project.entry-points."penstock.connectors"]
    "com.example.WeatherSource" = "weather.connector:WeatherSource"

A plug-in answers to its whole name, to the part behind the last dot, and to that without the word
for its kind (`FileStreamSource`), as in Connect; a Python class also to `module:Class`. The class
is imported when it is asked for.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from penstock.connect.errors.kinds import UnknownPlugin
from penstock.connect.plugins.built_in import BUILT_IN
from penstock.connect.plugins.contract import SinkConnector, SourceConnector


class PluginKind(Enum):
    """A kind of plug-in: the end of its entry points' group, and what its names may leave out."""

    CONNECTOR = ("connectors", "Connector")
    CONVERTER = ("converters", "Converter")
    HEADER_CONVERTER = ("header_converters", "HeaderConverter")
    TRANSFORM = ("transforms", "Transformation")
    PREDICATE = ("predicates", "Predicate")
    CONFIG_PROVIDER = ("config_providers", "ConfigProvider")

    @property
    def group(self) -> str:
        """The group of entry points."""
        return f"penstock.{self.value[0]}"

    @property
    def suffix(self) -> str:
        """What a name may leave out."""
        return self.value[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A plug-in that is there: its whole name, and where its class is."""

    name: str
    kind: PluginKind
    target: str  # module:Class

    @property
    def aliases(self) -> tuple[str, ...]:
        """All names it answers to."""
        simple = self.name.rpartition(".")[2]
        return (self.name, simple, simple.removesuffix(self.kind.suffix), self.target)

    def load(self) -> Any:
        """Its class."""
        module, _, attribute = self.target.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise UnknownPlugin(f"the plug-in {self.name} cannot be loaded: {error}") from error

    def document(self) -> dict[str, str]:
        """As `GET /connector-plugins` lists it."""
        found = self.load()
        version = getattr(found, "version", None)
        shown = version() if callable(version) else getattr(found, "KAFKA_VERSION", "4.3.1")
        return {"class": self.name, "type": _type_of(self.kind, found), "version": shown}


Finder = Callable[[str], Plugin | None]
# What is known in this process only since it read its settings: Java's connectors.
_OFFERED: dict[PluginKind, tuple[tuple[Plugin, ...], Finder]] = {}


def offer_plugins(kind: PluginKind, found: Iterable[Plugin], find: Finder) -> None:
    """Add plug-ins that have their own way of loading; `find` looks for one that is not listed.

    Those of the house and of installed packages come first.
    """
    _OFFERED[kind] = (tuple(found), find)
    plugins.cache_clear()


def built_in_names(kind: PluginKind) -> frozenset[str]:
    """The names that are taken."""
    installed = {one.name for one in entry_points(group=kind.group)}
    return frozenset({*BUILT_IN.get(kind.value[0], {}), *installed})


def find_plugin(kind: PluginKind, name: str) -> Plugin:
    """The plug-in of a name; UnknownPlugin names those that are there."""
    known = plugins(kind)
    exact = [one for one in known if name in (one.name, one.target)]
    found = exact or [one for one in known if name in one.aliases]
    if len(found) == 1:
        return found[0]
    unlisted = _OFFERED[kind][1](name) if not found and kind in _OFFERED else None
    if unlisted is not None:
        return unlisted
    if not found and ":" in name:
        return Plugin(name=name, kind=kind, target=name)
    if not found:
        raise UnknownPlugin(_unknown(kind, name, known))
    raise UnknownPlugin(
        f"More than one {kind.suffix.lower()} matches alias {name}. "
        f"Please use full package and class name instead. Classes found: "
        f"{', '.join(one.name for one in found)}"
    )


def load_plugin(kind: PluginKind, name: str) -> Any:
    """The class of a name."""
    return find_plugin(kind, name).load()


@cache
def plugins(kind: PluginKind) -> tuple[Plugin, ...]:
    """Every plug-in of a kind, by name; an installed one takes the place of one of the house."""
    targets = dict(BUILT_IN.get(kind.value[0], {}))
    targets.update({one.name: _target(one) for one in entry_points(group=kind.group)})
    offered = _OFFERED[kind][0] if kind in _OFFERED else ()
    found = {one.name: one for one in offered if one.name not in targets}
    found |= {n: Plugin(name=n, kind=kind, target=t) for n, t in targets.items()}
    return tuple(found[name] for name in sorted(found))


def plugin_documents(*, connectors_only: bool = True) -> list[dict[str, str]]:
    """The answer to `GET /connector-plugins`."""
    kinds = [PluginKind.CONNECTOR]
    if not connectors_only:
        kinds += [kind for kind in PluginKind if kind not in _UNLISTED]
    return [one.document() for one in _in_order(kinds)]


_UNLISTED = (PluginKind.CONNECTOR, PluginKind.CONFIG_PROVIDER)


def _in_order(kinds: list[PluginKind]) -> Iterator[Plugin]:
    for kind in kinds:
        yield from plugins(kind)


def _type_of(kind: PluginKind, found: Any) -> str:
    if kind is not PluginKind.CONNECTOR:
        return "transformation" if kind is PluginKind.TRANSFORM else kind.name.lower()
    if issubclass(found, SourceConnector):
        return "source"
    return "sink" if issubclass(found, SinkConnector) else "unknown"


def _target(point: EntryPoint) -> str:
    return point.value if ":" in point.value else ":".join(point.value.rsplit(".", 1))


def _unknown(kind: PluginKind, name: str, known: tuple[Plugin, ...]) -> str:
    listed = ", ".join(one.name for one in known)
    if kind is PluginKind.CONNECTOR:
        return (
            f"Failed to find any class that implements Connector and which name matches {name}, "
            f"available connectors are: {listed}"
        )
    return f"Class {name} could not be found: there are {listed}"
