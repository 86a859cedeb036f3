"""What is told of a tree from another terminal."""

import pytest

from penstock.platform.looking import SeenProcess, SeenTree, problems, word_of
from penstock.platform.state import DoorState, ProcessIdentity, ProcessState, TreeState

US = ProcessIdentity(pid=7, born=1)


def door(**more: object) -> DoorState:
    return DoorState(**{"service": "rest", "address": "http://x:1", "is_ready": True, **more})  # type: ignore[arg-type]


def process(*doors: DoorState, memory: int | None = 50, last_end: str | None = None) -> SeenProcess:
    state = ProcessState(
        name="services",
        identity=US,
        started_ms=0,
        restarts=0,
        log="",
        last_end=last_end,
        doors=doors,
    )
    return SeenProcess(state=state, memory_bytes=memory)


def seen(*processes: SeenProcess, is_supervised: bool = True) -> SeenTree:
    states = tuple(one.state for one in processes)
    state = TreeState(supervisor=US, started_ms=0, is_up=True, processes=states)
    return SeenTree(state=state, is_supervised=is_supervised, memory_bytes=20, processes=processes)


def test_a_tree_that_is_well_has_no_problems() -> None:
    assert problems(seen(process(door()))) == []
    assert seen(process(door()), process(memory=None)).total_bytes == 70


@pytest.mark.parametrize(
    ("tree", "sentence", "word"),
    [
        (seen(process(door(is_ready=False))), "rest does not answer at http://x:1", "starting"),
        (
            seen(process(door(problem="no topic"))),
            "rest at http://x:1 is failing: no topic",
            "failing",
        ),
        (
            seen(process(door(), memory=None, last_end="was ended by signal 9")),
            "services is down: it was ended by signal 9",
            "down",
        ),
        (
            seen(process(door()), is_supervised=False),
            "the supervisor was killed; what it left is stopping",
            "up",
        ),
    ],
)
def test_what_is_wrong_is_a_sentence(tree: SeenTree, sentence: str, word: str) -> None:
    assert problems(tree) == [sentence]
    assert word_of(tree.processes[0], tree.processes[0].state.doors[0]) == word
