"""The tables of tests/golden/schemas: pairs and histories of schemas, and what we answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.schemas.definitions.definition import NamedText, SchemaDefinition
from penstock.schemas.definitions.parse import parse_definition
from penstock.schemas.definitions.protobuf import ProtobufDefinition
from penstock.schemas.lookup import SchemaKind

GOLDEN = Path(__file__).resolve().parents[4] / "golden" / "schemas"
YES = "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A title, schemas by their role, and answers by level."""

    kind: SchemaKind
    title: str
    words: dict[str, str]

    def schema(self, role: str) -> SchemaDefinition:
        """The schema in a role: old, new, first or second."""
        reference = self.words.get(f"{role}ref")
        references = []
        if reference is not None:
            name, _, text = reference.partition(" ")
            references.append(NamedText(name=name, text=self._whole(text)))
        return self._parse(self._whole(self.words[role]), references)

    def _whole(self, text: str) -> str:
        proto3 = self.kind is SchemaKind.PROTOBUF and not text.startswith("syntax")
        return f'syntax = "proto3"; {text}' if proto3 else text

    def _parse(self, text: str, references: Sequence[NamedText]) -> SchemaDefinition:
        if self.kind is SchemaKind.PROTOBUF:
            return compile_here(text, references)
        return parse_definition(self.kind, text, references)


def read_cases(kind: SchemaKind) -> list[Case]:
    """All cases of a language."""
    lines = (GOLDEN / f"{kind.lower()}.txt").read_text("utf-8").splitlines()
    cases: list[Case] = []
    for line in lines:
        if not line or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word == "--":
            cases.append(Case(kind=kind, title=rest, words={}))
        else:
            assert word not in cases[-1].words, line
            cases[-1].words[word] = rest
    return cases


def compile_here(text: str, references: Sequence[NamedText] = ()) -> ProtobufDefinition:
    """As `ProtobufDefinition.parse`, with the compiler in this process: ten times faster."""
    from grpc_tools import protoc

    included = Path(protoc.__file__).parent / "_proto"
    with TemporaryDirectory() as name:
        folder = Path(name)
        for one in (*references, NamedText(name="root.proto", text=text)):
            (folder / one.name).write_text(one.text, "utf-8")
        paths = [f"-I{folder}", f"-I{included}", "--include_imports"]
        done = protoc.main(["protoc", *paths, f"--descriptor_set_out={name}/out", "root.proto"])
        assert done == 0, text
        return ProtobufDefinition(text=text, descriptor_set=(folder / "out").read_bytes())
