"""A store in memory, and settings of a sink."""

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import IO, Any

from penstock.connect.connectors.objects.kinds import StoreKind
from penstock.connect.connectors.objects.sink import ObjectSinkTask
from penstock.connect.connectors.objects.source import ObjectSourceTask
from penstock.connect.connectors.objects.store import ObjectStore
from penstock.connect.errors.kinds import RetriableConnectError
from penstock.connect.plugins.config_def import ConfigDef, ConfigEntry, ConfigType, Importance
from penstock.connect.plugins.contract import Config


class MemoryStore:
    """Objects by name; `failures` calls of put are refused first."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.puts: list[str] = []
        self.failures = 0
        self.broken_reads = 0

    def check(self) -> None:
        return

    def put(self, name: str, content: IO[bytes]) -> None:
        if self.failures:
            self.failures -= 1
            raise RetriableConnectError("the store is away")
        content.seek(0)
        self.objects[name] = content.read()
        self.puts.append(name)

    def get(self, name: str) -> IO[bytes]:
        if self.broken_reads:
            self.broken_reads -= 1
            raise RetriableConnectError("the store is away")
        return BytesIO(self.objects[name])

    def folders(self, folder: str) -> Iterator[str]:
        found = {folder} | {name.rpartition("/")[0] for name in self.objects}
        return iter(sorted(one for one in found if one == folder or one.startswith(f"{folder}/")))

    def names(self, folder: str, after: str = "") -> Iterator[str]:
        right = (name for name in sorted(self.objects) if name.rpartition("/")[0] == folder)
        return (name for name in right if name > after)

    def close(self) -> None:
        return


MEMORY = StoreKind(
    name="memory",
    config=ConfigDef(
        ConfigEntry("memory.place", ConfigType.STRING, "memory", Importance.HIGH, "Where it is.")
    ),
    place="memory.place",
    opened=lambda _config: MemoryStore(),
)


class MemorySinkTask(ObjectSinkTask):
    kind = MEMORY

    def __init__(self, store: MemoryStore, clock_ms: int = 0) -> None:
        self.now_ms = clock_ms
        super().__init__(clock_ms=lambda: self.now_ms)
        self.store = store

    def opened(self, parsed: Mapping[str, Any]) -> ObjectStore:
        return self.store


class MemorySourceTask(ObjectSourceTask):
    kind = MEMORY

    def __init__(self, store: MemoryStore) -> None:
        super().__init__()
        self.store = store

    def start(self, config: Config) -> None:
        super().start({**config, MEMORY.poll_name: "0"})

    def opened(self, parsed: Mapping[str, Any]) -> ObjectStore:
        return self.store


def sink_config(**more: str) -> dict[str, str]:
    """JSON, three records an object, and what is given with _ for dots."""
    settings = {"format.class": "JsonFormat", "flush.size": "3"}
    return settings | {name.replace("_", "."): text for name, text in more.items()}
