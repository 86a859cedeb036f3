"""Protobuf's own compiler, in a process that may crash or hang without harm.

`grpcio-tools` brings it as a Python package. Foreign texts go in as files of a directory of their
own, a descriptor set comes out. What was compiled is remembered, since a history is compared often.
"""

import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from penstock.schemas.definitions.definition import NamedText, check_references, check_text
from penstock.schemas.errors import SchemaError

TIME_LIMIT_S = 20.0
ROOT_FILE = "__root__.proto"
_OUTPUT = "out.desc"
_MEMORY_BYTES_MAX = 2 << 30  # Of addresses; the compiler itself takes a tenth of that.
_PROGRAM = (
    "import resource, sys\n"
    f"resource.setrlimit(resource.RLIMIT_AS, ({_MEMORY_BYTES_MAX}, {_MEMORY_BYTES_MAX}))\n"
    "from grpc_tools import protoc\n"
    "sys.exit(protoc.main(['protoc', *sys.argv[1:]]))\n"
)


def compile_proto(text: str, references: Sequence[NamedText] = ()) -> bytes:
    """The descriptor set of a text and of what it imports, itself last."""
    check_text(text)
    check_references(references)
    if any(one.name == ROOT_FILE for one in references):
        raise SchemaError(f"a Protobuf reference cannot be named {ROOT_FILE}")
    return _compile(text, tuple((one.name, one.text) for one in references))


@lru_cache(maxsize=512)
def _compile(text: str, references: tuple[tuple[str, str], ...]) -> bytes:
    included = _included()
    with TemporaryDirectory(prefix="penstock-protoc-") as name:
        folder = Path(name) / "in"
        folder.mkdir()
        for path, content in (*references, (ROOT_FILE, text)):
            target = folder / _safe(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, "utf-8")
        return _run(folder, Path(name) / _OUTPUT, included)


def _run(folder: Path, output: Path, included: Path) -> bytes:
    command = [
        sys.executable,
        "-c",
        _PROGRAM,
        f"-I{folder}",
        f"-I{included}",
        "--include_imports",
        f"--descriptor_set_out={output}",
        ROOT_FILE,
    ]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIME_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise SchemaError(f"the schema took more than {TIME_LIMIT_S:.0f} s to compile") from None
    if done.returncode != 0 or not output.exists():
        told = done.stderr.decode(errors="replace").replace(f"{folder}/", "").strip()
        raise SchemaError(told[:2_000] or f"protoc ended with {done.returncode}")
    return output.read_bytes()


def _included() -> Path:
    """Where the compiler keeps Google's own files."""
    spec = find_spec("grpc_tools")
    if spec is None or spec.origin is None:
        raise SchemaError("Protobuf schemas need its compiler: pip install 'penstock[protoc]'")
    return Path(spec.origin).parent / "_proto"


def _safe(name: str) -> PurePosixPath:
    """A reference's name as a path that stays inside."""
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\0" in name:
        raise SchemaError(f"a Protobuf reference cannot be named {name!r}")
    return path
