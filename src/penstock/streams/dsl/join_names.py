"""What Kafka Streams calls the parts of a stream-stream join: five nodes and up to three stores."""

from penstock.streams.plan.graph import Graph
from penstock.streams.steps.tables import JoinKind


def join_names(
    graph: Graph, kind: JoinKind, store: str | None, name: str | None
) -> tuple[list[str], list[str], str]:
    """The nodes of a stream-stream join, its two stores, and the store of those who wait.

    The stores of a join without a name for them have the numbers of its two sides.
    """
    this_kind = "OUTERTHIS" if kind == "outer" else "JOINTHIS"
    other_kind = "JOINOTHER" if kind == "inner" else "OUTEROTHER"
    kinds = ("WINDOWED", "WINDOWED", this_kind, other_kind, "MERGE")
    made = [graph.new_name(f"KSTREAM-{kind_name}-") for kind_name in kinds]
    this = "-outer-this-join" if kind == "outer" else "-this-join"
    that = "-other-join" if kind == "inner" else "-outer-other-join"
    stores, shared = made[2:4], f"KSTREAM-OUTERSHARED-{made[2][-10:]}"
    if store:
        stores, shared = [store + this, store + that], f"{store}-{kind}-shared-join"
    if name:
        made = [name + s for s in ("-this-windowed", "-other-windowed", this, that, "-merge")]
    return made, [f"{one}-store" for one in stores], f"{shared}-store"
