"""Java connectors on `plugin.path`: which there are, and in which jars, without a JVM.

A folder of `plugin.path` has plug-ins: folders of jars, and jars. One that has jars itself is one
plug-in with all of them. Connectors are listed by the files that Java's ServiceLoader reads; one
that is not listed there is found by its whole name. A class whose name one of ours has answers to
`java:` and its name.
"""

import logging
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from penstock.connect.java.connector import JavaClass, java_connector
from penstock.connect.plugins.lookup import Plugin, PluginKind, built_in_names, offer_plugins

log = logging.getLogger("penstock.connect.java")
PREFIX = "java:"
OPTIONS = "-Xmx512m -XX:+UseSerialGC"
_SOURCES = "META-INF/services/org.apache.kafka.connect.source.SourceConnector"
_VERSION = re.compile(r"-(\d[\w.-]*)\.jar$")
_JARS_MAX = 2000  # Of one plug-in; more is a folder that is none.
_LISTING_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaPlugin(Plugin):
    """A connector of Java's."""

    java: JavaClass

    def load(self) -> Any:
        """Its class; no JVM is started for it."""
        return java_connector(self.java)

    def document(self) -> dict[str, str]:
        """As `GET /connector-plugins` lists it."""
        return {"class": self.name, "type": "source", "version": self.java.version}


@dataclass(frozen=True, slots=True, kw_only=True)
class JarFolder:
    """The jars of one plug-in, with those that every plug-in gets."""

    own: tuple[Path, ...]
    shared: tuple[Path, ...]
    options: tuple[str, ...]

    def plugin(self, name: str, jar: Path) -> JavaPlugin:
        """A class that is in one of the jars."""
        taken = {one.name for one in self.own}
        jars = (*self.own, *(one for one in self.shared if one.name not in taken))
        found = _VERSION.search(jar.name)
        version = found[1] if found else "undefined"
        java = JavaClass(name=name, version=version, jars=jars, options=self.options)
        shown = f"{PREFIX}{name}" if name in built_in_names(PluginKind.CONNECTOR) else name
        return JavaPlugin(
            name=shown, kind=PluginKind.CONNECTOR, target=f"{PREFIX}{name}", java=java
        )

    def listed(self) -> Iterator[JavaPlugin]:
        """The connectors that the jars themselves name."""
        for jar in self.own:
            for name in _listed(jar):
                yield self.plugin(name, jar)

    def find(self, name: str) -> JavaPlugin | None:
        """A class by its whole name; None: no jar has it."""
        entry = f"{name.replace('.', '/')}.class"
        for jar in self.own:
            if entry in _entries(jar):
                return self.plugin(name, jar)
        return None


def offer_java(settings: Mapping[str, str]) -> None:
    """Have the connectors on `plugin.path` found by their names, in this process."""
    places = [one.strip() for one in settings.get("plugin.path", "").split(",") if one.strip()]
    if not places:
        return
    shared_path = settings.get("penstock.connect.java.path", "").strip()
    shared = tuple(_jars(Path(shared_path))) if shared_path else ()
    options = tuple(settings.get("penstock.connect.java.options", OPTIONS).split())
    folders = [
        JarFolder(own=own, shared=shared, options=options)
        for place in places
        for own in _plugin_jars(Path(place))
    ]
    listed = {one.name: one for folder in folders for one in folder.listed()}

    def find(name: str) -> Plugin | None:
        wanted = name.removeprefix(PREFIX)
        return next((one for folder in folders if (one := folder.find(wanted))), None)

    offer_plugins(PluginKind.CONNECTOR, listed.values(), find)


def _plugin_jars(place: Path) -> Iterator[tuple[Path, ...]]:
    if not place.is_dir():
        log.warning("plugin.path names %s, which is no folder", place)
        return
    direct = tuple(sorted(place.glob("*.jar")))
    if direct:
        yield direct
    for child in sorted(place.iterdir()):
        jars = tuple(_jars(child)) if child.is_dir() else ()
        if jars:
            yield jars


def _jars(folder: Path) -> Iterable[Path]:
    found = sorted(folder.rglob("*.jar"))
    if len(found) > _JARS_MAX:
        log.warning("%s has more than %d jars, and is no plug-in", folder, _JARS_MAX)
        return []
    return found


def _listed(jar: Path) -> list[str]:
    try:
        with zipfile.ZipFile(jar) as archive, archive.open(_SOURCES) as listing:
            text = listing.read(_LISTING_BYTES_MAX).decode(errors="replace")
    except (OSError, KeyError, zipfile.BadZipFile):
        return []
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


@cache
def _entries(jar: Path) -> frozenset[str]:
    try:
        with zipfile.ZipFile(jar) as archive:
            return frozenset(archive.namelist())
    except (OSError, zipfile.BadZipFile) as error:
        log.warning("%s cannot be read: %s", jar, error)
        return frozenset()
