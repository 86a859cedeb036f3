"""The queries of a script and the topologies they become, without running any."""

from collections.abc import Iterator

from penstock.sql.analysis.logical import JoinStep, LogicalQuery
from penstock.sql.analysis.persistent import QueryInto
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.relations import Relation
from penstock.sql.commands.applying import COMMANDS, Commands
from penstock.sql.functions.table import FunctionTable
from penstock.sql.language.parse import parse
from penstock.sql.language.scripts import statement_texts
from penstock.sql.language.variables import substitute
from penstock.sql.planning.planner import Planner
from penstock.sql.testing.memory_schemas import MemorySchemas


def explained(script: str, functions: FunctionTable) -> Iterator[str]:
    """A text for each persistent query of a script; what asks and asserts is passed over."""
    catalog, schemas = Catalog(), MemorySchemas()
    for text in statement_texts(script):
        for statement in parse(substitute(text, catalog.variables)):
            if not isinstance(statement, COMMANDS):
                continue
            outcome = Commands(functions, schemas).apply(catalog, statement)
            catalog = outcome.catalog
            if outcome.started is not None:
                yield query_text(outcome.started, Planner.of(catalog, functions, schemas))


def query_text(query: QueryInto, planner: Planner) -> str:
    """A query, what was understood of it, and its topology."""
    lines = [query.note.statement, "", f"{query.note.id} writes {_relation(query.sink)}"]
    lines += [f"  {line}" for line in _clauses(query.logical)]
    return "\n".join([*lines, "", planner.plan(query).describe()])


def _relation(relation: Relation) -> str:
    window = "" if relation.key_window is None else f", {relation.key_window} windows"
    return (
        f"the {relation.kind.lower()} {relation.name} ({relation.columns}) to {relation.topic}, "
        f"key {relation.key_format}, value {relation.value_format}{window}"
    )


def _clauses(query: LogicalQuery) -> Iterator[str]:
    for source in query.sources[:1]:
        yield f"read {source.relation.name} from {source.relation.topic}"
    yield from (_join(step) for step in query.joins)
    if query.where is not None:
        yield f"filter {query.where}"
    for one in query.exploded:
        yield f"explode {one.call} as {one.name}"
    if query.grouping is not None:
        keys = ", ".join(str(key.expression) for key in query.grouping.keys)
        moved = ", through a repartition topic" if query.grouping.rekeys else ""
        yield f"group by {keys}{moved}"
        if query.grouping.window is not None:
            yield f"window {query.grouping.window}"
        for call in query.grouping.aggregates:
            yield f"aggregate {call.call} as {call.name} {call.type}"
        if query.grouping.having is not None:
            yield f"having {query.grouping.having}"
    if query.partitioning is not None:
        keys = ", ".join(str(part.expression) for part in query.partitioning)
        yield f"partition by {keys or 'nothing'}"
    for output in query.outputs:
        role = "" if output.key_part is None else " KEY"
        yield f"select {output.expression} as {output.name} {output.type}{role}"


def _join(step: JoinStep) -> str:
    moved = [side for side, moves in (("left", step.rekeys_left), ("right", step.rekeys_right))
             if moves]  # fmt: skip
    told = f", {' and '.join(moved)} through a repartition topic" if moved else ""
    return (
        f"{step.kind} {step.shape} join with {step.right.relation.name} on "
        f"{step.left_key} = {step.right_key}{told}"
    )
