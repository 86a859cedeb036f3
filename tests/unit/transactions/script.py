"""Transcripts: one line per event, with the answer and the state it leaves behind.

    init => 1/0                                 | Empty 1/0
    add 1/0 t-0 => ok                           | Ongoing 1/0 t-0

The left side is read, the rest is written anew; a transcript passes when both are the same.
"""

from collections.abc import Callable

from penstock.errors import ProtocolError
from penstock.transactions import rules
from penstock.transactions.transaction import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    TV1,
    TV2,
    ProducerIdentity,
    Transaction,
    TransactionState,
)

ID = "txn"


class Script:
    """One transactional id, driven by the left sides of a transcript."""

    def __init__(self) -> None:
        self.known: Transaction | None = None
        self.now_ms = 0
        self._next_producer_id = 1

    def play(self, transcript: str) -> str:
        lines = [line.strip() for line in transcript.strip().splitlines()]
        return "\n".join(self._line(line) for line in lines)

    def _line(self, line: str) -> str:
        if not line or line.startswith("#"):
            return line
        command = line.split("=>")[0].strip()
        if command.startswith("at "):
            self.now_ms = int(command.split()[1])
            return command
        verb, *words = command.split()
        run: Callable[..., str] = getattr(self, f"_{verb}")
        try:
            answer = run(*words)
        except ProtocolError as error:
            answer = type(error).__name__
        return f"{command} => {answer}".ljust(44) + f"| {shown(self.known)}"

    # The verbs

    def _init(self, *words: str) -> str:
        expected = identity(words[-1]) if words[:1] == ("as",) else None
        return self._stepped(
            lambda spare: rules.initialize(
                self.known,
                transactional_id=ID,
                timeout_ms=60_000,
                expected=expected,
                spare_id=spare,
                now_ms=self.now_ms,
            )
        )

    def _add(self, who: str, *partitions: str) -> str:
        return self._added(who, partitions, TV1)

    def _add2(self, who: str, *partitions: str) -> str:
        return self._added(who, partitions, TV2)

    def _added(self, who: str, partitions: tuple[str, ...], client_version: int) -> str:
        self._stepped(
            lambda _: rules.add_partitions(
                self.known,
                identity(who),
                [partition(each) for each in partitions],
                client_version=client_version,
                now_ms=self.now_ms,
            )
        )
        return "ok"

    def _verify(self, who: str, *partitions: str) -> str:
        wanted = [partition(each) for each in partitions]
        found = rules.verify(self.known, identity(who), wanted)
        return " ".join(
            "ok" if found[each] is None else type(found[each]).__name__ for each in wanted
        )

    def _commit(self, who: str) -> str:
        return self._ended(who, is_commit=True, client_version=TV1)

    def _abort(self, who: str) -> str:
        return self._ended(who, is_commit=False, client_version=TV1)

    def _commit2(self, who: str) -> str:
        return self._ended(who, is_commit=True, client_version=TV2)

    def _abort2(self, who: str) -> str:
        return self._ended(who, is_commit=False, client_version=TV2)

    def _ended(self, who: str, *, is_commit: bool, client_version: int) -> str:
        return self._stepped(
            lambda spare: rules.end(
                self.known,
                identity(who),
                is_commit=is_commit,
                client_version=client_version,
                spare_id=spare,
                now_ms=self.now_ms,
            )
        )

    def _complete(self) -> str:
        assert self.known is not None
        assert self.known.state.is_preparing
        self.known = rules.complete(self.known, now_ms=self.now_ms)
        return "ok"

    def _clock(self) -> str:
        assert self.known is not None
        if not rules.is_timed_out(self.known, now_ms=self.now_ms):
            return "in time"
        self.known = rules.time_out(self.known, now_ms=self.now_ms)
        return "timed out"

    def _reload(self) -> str:
        """What a coordinator knows after reading its log."""
        from penstock.transactions.stored import read_record, to_record

        assert self.known is not None
        found = read_record(*to_record(self.known))
        assert found is not None
        self.known = found[1]
        return "ok"

    def _set(self, who: str) -> str:
        """Skip ahead to an epoch, to be near the last one without thirty thousand lines."""
        assert self.known is not None
        self.known = Transaction(
            transactional_id=ID,
            state=TransactionState.EMPTY,
            producer_id=identity(who).producer_id,
            producer_epoch=identity(who).producer_epoch,
            timeout_ms=60_000,
            updated_ms=self.now_ms,
        )
        return "ok"

    def _stepped(self, decide: Callable[[int | None], rules.Step | None]) -> str:
        step = decide(None)
        if step is None:
            step = decide(self._next_producer_id)
            self._next_producer_id += 1
        assert step is not None, "a producer id to spare was not enough"
        if step.after is not None:
            self.known = step.after
        if isinstance(step.answer, ProtocolError):
            return type(step.answer).__name__
        return f"{step.answer.producer_id}/{step.answer.producer_epoch}"


def identity(text: str) -> ProducerIdentity:
    producer_id, epoch = text.split("/")
    return ProducerIdentity(int(producer_id), int(epoch))


def partition(text: str) -> tuple[str, int]:
    topic, number = text.rsplit("-", 1)
    return topic, int(number)


def shown(known: Transaction | None) -> str:
    if known is None:
        return "unknown"
    words = [known.state.label, f"{known.producer_id}/{known.producer_epoch}"]
    words += [f"{topic}-{number}" for topic, number in sorted(known.partitions)]
    if known.next_producer_id != NO_PRODUCER_ID:
        words.append(f"next={known.next_producer_id}")
    if known.previous_producer_id not in (NO_PRODUCER_ID, known.producer_id):
        words.append(f"previous={known.previous_producer_id}")
    if known.last_epoch != NO_EPOCH:
        words.append(f"last={known.last_epoch}")
    return " ".join(words)


def check(transcript: str) -> None:
    """Play the left sides; what comes out is the transcript itself."""
    wanted = "\n".join(line.strip() for line in transcript.strip().splitlines())
    assert Script().play(transcript) == wanted
