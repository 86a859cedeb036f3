"""Files of pipelines: import one by its path and collect what it declares.

A file is ordinary Python. Its module gets a name of its own, so that a file called `logging.py`
hides nothing, and is marked to travel to Spark's workers by value: they need not find the file.
"""

import importlib.util
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from zlib import crc32

from penstock.errors import CommandError
from penstock.pipelines.declaration import Pipeline


def load_files(paths: Iterable[Path]) -> dict[str, tuple[Pipeline, Path]]:
    """All pipelines of the files by name, each with its file; their names must differ."""
    found: dict[str, tuple[Pipeline, Path]] = {}
    for path in paths:
        for declared in load_file(path):
            if declared.name in found:
                raise CommandError(
                    f"Two pipelines are called {declared.name!r}, in {found[declared.name][1]} and "
                    f"in {path}; give one of them another name=."
                )
            found[declared.name] = (declared, path)
    return found


def load_file(path: Path) -> list[Pipeline]:
    """The pipelines that one file declares at its top level."""
    if not path.is_file():
        raise CommandError(f"{path} is not a file; give the Python file of a pipeline.")
    module = load_module(path)
    declared = {id(v): v for v in vars(module).values() if isinstance(v, Pipeline)}
    if not declared:
        raise CommandError(
            f"{path} declares no pipeline; put @pipeline(inputs=..., output=...) on a function."
        )
    return list(declared.values())


def module_of(declared: Pipeline) -> ModuleType | None:
    """The module that defines a pipeline's function; None if it has none."""
    return sys.modules.get(declared.transform.__module__)


def load_module(path: Path) -> ModuleType:
    """A Python file as a module of a name of its own; CommandError tells what it raised."""
    if not path.is_file():
        raise CommandError(f"{path} is not a file; give a Python file.")
    name = f"penstock_pipeline_{path.stem.replace('-', '_')}_{crc32(bytes(path.resolve())):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CommandError(f"{path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # Files beside it can be imported, but hide nothing.
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise CommandError(f"{path}{_line(error, path)}: {_said(error)}") from error
    return module


def _line(error: Exception, path: Path) -> str:
    """`:17` for the line of the file where it went wrong."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f":{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame.lineno for frame in frames if frame.filename == str(path) and frame.lineno]
    return f":{inside[-1]}" if inside else ""


def _said(error: Exception) -> str:
    from penstock.errors import PenstockError

    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return text if isinstance(error, PenstockError) else f"{type(error).__name__}: {text}"
