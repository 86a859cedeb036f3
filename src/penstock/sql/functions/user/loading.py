"""User functions from the Python files of a directory, read again when a file changes.

Whoever keeps a table asks `refresh` from time to time. A file that cannot be read keeps the
functions of its last good version, and the error says where it is. Each file stands alone: it may
import what is installed, and not its neighbours.
"""

import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from penstock.sql.functions.table import SqlFunction
from penstock.sql.functions.user.annotations import AnnotationRefused
from penstock.sql.functions.user.decorators import MARK, function_of

_FILE_BYTES_MAX: Final = 1_000_000
_MODULE_PREFIX: Final = "penstock_user_functions_"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFileError:
    """What is wrong with a file."""

    path: Path
    line: int | None
    reason: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{place}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _UserFile:
    stamp: tuple[int, int]  # When it was written, and its size.
    functions: tuple[tuple[int | None, SqlFunction], ...] = ()  # Each with its line.
    errors: tuple[UserFileError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """All functions there are now, whether they changed, and what is wrong."""

    functions: tuple[SqlFunction, ...]
    errors: tuple[UserFileError, ...]
    has_changed: bool


class UserFunctions:
    """The functions of one directory; `taken` are names that no file may use."""

    def __init__(self, directory: Path, taken: frozenset[str] = frozenset()) -> None:
        self._directory, self._taken = directory, taken
        self._files: dict[Path, _UserFile] = {}

    def refresh(self) -> Refreshed:
        """Read what is new, changed or gone."""
        found = dict(self._stamps())
        has_changed = found.keys() != self._files.keys()
        for path in self._files.keys() - found.keys():
            del self._files[path]
        for path, stamp in found.items():
            known = self._files.get(path)
            if known is None or known.stamp != stamp:
                self._files[path] = _read(path, stamp, known)
                has_changed = True
        return self._all(has_changed)

    def _stamps(self) -> Iterator[tuple[Path, tuple[int, int]]]:
        if not self._directory.is_dir():
            return
        for path in sorted(self._directory.glob("*.py")):
            if path.name.startswith("_"):
                continue
            with suppress(FileNotFoundError):  # Gone since the directory was listed.
                stat = path.stat()
                yield path, (stat.st_mtime_ns, stat.st_size)

    def _all(self, has_changed: bool) -> Refreshed:
        functions: dict[str, SqlFunction] = {}
        errors: list[UserFileError] = []
        for path in sorted(self._files):
            errors += self._files[path].errors
            for line, function in self._files[path].functions:
                if (reason := self._refusal(function, functions)) is None:
                    functions[function.name] = function
                else:
                    errors.append(UserFileError(path=path, line=line, reason=reason))
        return Refreshed(
            functions=tuple(functions.values()), errors=tuple(errors), has_changed=has_changed
        )

    def _refusal(self, function: SqlFunction, known: dict[str, SqlFunction]) -> str | None:
        if function.name in self._taken:
            return f"the function {function.name} is built in: choose another name"
        if function.name in known:
            return f"the function {function.name} is also in {known[function.name].path}"
        return None


def _read(path: Path, stamp: tuple[int, int], known: _UserFile | None) -> _UserFile:
    try:
        functions, errors = _functions(path, _run(path, stamp[1]))
    except Exception as error:  # noqa: BLE001  (a user's file may raise whatever it likes)
        fault = UserFileError(path=path, line=_line(error, path), reason=_words(error))
        return replace(known or _UserFile(stamp=stamp), stamp=stamp, errors=(fault,))
    return _UserFile(stamp=stamp, functions=tuple(functions), errors=tuple(errors))


def _run(path: Path, size: int) -> dict[str, Any]:
    if size > _FILE_BYTES_MAX:
        raise ValueError(f"the file is larger than {_FILE_BYTES_MAX} bytes")
    module = ModuleType(_MODULE_PREFIX + path.stem)
    module.__file__ = str(path)
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    return module.__dict__


def _functions(
    path: Path, namespace: dict[str, Any]
) -> tuple[list[tuple[int | None, SqlFunction]], list[UserFileError]]:
    functions, errors = [], []
    for target in list(namespace.values()):
        if MARK not in getattr(target, "__dict__", {}):
            continue
        line = _first_line(target)
        try:
            functions.append((line, function_of(target, str(path), namespace)))
        except AnnotationRefused as error:
            errors.append(UserFileError(path=path, line=line, reason=str(error)))
    return functions, errors


def _first_line(target: Any) -> int | None:
    code = getattr(target, "__code__", None) or getattr(
        getattr(target, "add", None), "__code__", None
    )
    return None if code is None else int(code.co_firstlineno)


def _line(error: Exception, path: Path) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame.lineno for frame in frames if frame.filename == str(path)]
    return theirs[-1] if theirs else None


def _words(error: Exception) -> str:
    words = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {words}"
