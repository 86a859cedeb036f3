"""Classes named in a configuration: find them, configure them, close them.

What a plug-in must be able to do is said where it is used: `serialization`, `partitioners`,
`interceptors`.
"""

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import cast

from penstock.errors import ConfigError

log = logging.getLogger("penstock.client")


def load(name: str) -> type | Callable[..., object]:
    """The class or function at `package.module.Name` or `package.module:Name`."""
    module, _, attribute = name.replace(":", ".").rpartition(".")
    if not module:
        raise ConfigError(f"{name!r} names no class: write package.module.ClassName")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the class {name!r} cannot be found: {error}") from error
    return cast("type | Callable[..., object]", found)


def configure(plugin: object, settings: Mapping[str, object], **more: object) -> None:
    """Call `configure`, where the plug-in has it, with the whole configuration."""
    method = getattr(plugin, "configure", None)
    if method is not None:
        method(settings, **more)


def close(plugin: object) -> None:
    """Call `close`, where the plug-in has it; its failure must not stop the client's closing."""
    method = getattr(plugin, "close", None)
    if method is None:
        return
    try:
        method()
    except Exception:
        log.warning("The plug-in %r failed to close.", plugin, exc_info=True)
