"""CRC-32C, without what the package around it does on import.

`import crc32c` reads the metadata of installed packages to learn its own version. That takes as
long as everything else a broker imports together, so the extension module is loaded alone.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import cast

from penstock.records import Bytes


def _load() -> Callable[[Bytes], int]:
    package = PathFinder.find_spec("crc32c")
    places = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("crc32c._crc32c", places) if places else None
    if spec is None or spec.loader is None:  # Installed in a way we do not know: the slow road.
        from crc32c import crc32c

        return crc32c
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Callable[[Bytes], int], module.crc32c)


crc32c = _load()
