"""What security costs: rules beside none, and TLS beside Apache Kafka with the same settings."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.integration.security.acl_script import PLAIN_MODULE, as_user, rule_of
from tests.support.apache_kafka import KafkaProcess
from tests.support.broker import BrokerProcess
from tests.support.key_stores import make_identity
from tests.support.processes import HOST, free_port

from bench.load import Shape
from bench.plan import Plan, alternate
from bench.report import Goal, Row, throughput_row
from bench.rows.produce import Run, into_new_topics
from bench.subjects import (
    PROMPT_DELETION,
    Round,
    Subjects,
    create_topic,
    delete_topic,
    fresh,
    raw_load,
    run_load,
)
from penstock.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from penstock.security.acls.rules import AclOperation as Op
from penstock.security.acls.rules import AclPermission, AclResourceType, PatternType

RULES = 10_000
RULES_AT_ONCE = 1_000
BATCH_BYTES = 1_048_576
LOG_BYTES = 100 * BATCH_BYTES
READ_TOPIC, TRIP_TOPIC = "bench-read", "bench-trip"
STORE_PASSWORD = "a store's password"
SMALL = ["--batch-bytes", "16384", "--record-bytes", "1000", "--partitions", "1"]
LARGE = ["--batch-bytes", str(BATCH_BYTES), "--record-bytes", "1024", "--partitions", "6"]


# Rules


def with_rules(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Small batches in, large fetches out: with an authorizer and 10,000 rules, and without."""
    amount = ["--total-bytes", str(plan.small_bytes), "--in-flight", "5"]
    with _guarded(subjects) as guarded, subjects.penstock() as open_:
        open_.start()
        writing: dict[str, Run] = {
            "penstock": into_new_topics(guarded, [*SMALL, *amount], 1),
            "open": into_new_topics(open_, [*SMALL, *amount], 1),
        }
        produced = alternate(writing, rounds=plan.rounds)
        reading: dict[str, Run] = {}
        for name, server in (("penstock", guarded), ("open", open_)):
            create_topic(server, READ_TOPIC, 6)
            fill = ["--total-bytes", str(LOG_BYTES * 6), "--topic", READ_TOPIC]
            raw_load(server, "produce", [*LARGE, *fill])
            reading[name] = _plain_reader(server, plan)
        fetched = alternate(reading, rounds=plan.rounds)
    goals = [Goal(beside="open", at_least=0.97)]
    yield throughput_row("produce 16 KB batches, 10,000 ACLs", produced, goals)
    yield throughput_row("fetch, 6 partitions, 10,000 ACLs", fetched, goals)


@contextmanager
def _guarded(subjects: Subjects) -> Iterator[BrokerProcess]:
    """A broker whose rules let everybody use the topics of the bench, among many others."""
    ports = {name: free_port() for name in ("PLAINTEXT", "SASL_PLAINTEXT")}
    settings = {
        **PROMPT_DELETION,
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{PLAIN_MODULE} required user_admin="admin-secret";'
        ),
    }
    directory = fresh(subjects.directory / "guarded")
    with BrokerProcess(directory, settings, port=ports["PLAINTEXT"]) as broker:
        broker.start()
        _write_rules(ports["SASL_PLAINTEXT"])
        yield broker


def _write_rules(port: int) -> None:
    topic, anonymous = AclResourceType.TOPIC, "User:ANONYMOUS"
    own = (topic, "bench-", Op.ALL, PatternType.PREFIXED, AclPermission.ALLOW, anonymous)
    others = [
        (
            topic,
            f"team-{number // 2}",
            operation,
            PatternType.LITERAL,
            AclPermission.ALLOW,
            "User:x",
        )
        for number, operation in zip(range(RULES), (Op.READ, Op.WRITE) * (RULES // 2), strict=True)
    ]
    rules = [rule_of(rule) for rule in (own, *others)]
    with as_user(port, "admin", "admin-secret") as admin:
        for at in range(0, len(rules), RULES_AT_ONCE):
            asked = CreateAclsRequest(creations=rules[at : at + RULES_AT_ONCE])
            answer = admin.ask(asked, CreateAclsResponse, timeout_s=300)
            assert not any(one.error_code for one in answer.results), answer.results[0]


def _plain_reader(server: BrokerProcess, plan: Plan) -> Run:
    return lambda: raw_load(server, "fetch", _fetch_work(plan))


def _fetch_work(plan: Plan) -> list[str]:
    shape = Shape(topic=READ_TOPIC, partitions=6, batch_bytes=BATCH_BYTES, record_bytes=1024)
    end_offset = LOG_BYTES // BATCH_BYTES * shape.records_per_batch()
    amount = ["--end-offset", str(end_offset), "--total-bytes", str(plan.fetch_bytes)]
    return [*LARGE, "--topic", READ_TOPIC, *amount]


# TLS


@dataclass(frozen=True, slots=True)
class SealedServer:
    """A broker with a plaintext listener for the preparations, and one with TLS."""

    server: BrokerProcess | KafkaProcess
    port: int
    ca: Path

    def load(self, work: str, arguments: list[str]) -> Round:
        where = ["--port", str(self.port), "--ca", str(self.ca)]
        return run_load(self.server, "bench.load", work, *where, *arguments)


def encrypted(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """1 MB batches through TLS 1.3, in and out."""
    amount = ["--total-bytes", str(plan.large_bytes), "--in-flight", "5"]
    with _sealed(subjects) as sealed:
        writing = {name: _sealed_writer(one, [*LARGE, *amount]) for name, one in sealed.items()}
        produced = alternate(writing, rounds=plan.rounds)
        for one in sealed.values():
            create_topic(one.server, READ_TOPIC, 6)
            fill = ["--total-bytes", str(LOG_BYTES * 6), "--topic", READ_TOPIC]
            raw_load(one.server, "produce", [*LARGE, *fill])
        reading = {
            name: _sealed_run(one, "fetch", _fetch_work(plan)) for name, one in sealed.items()
        }
        fetched = alternate(reading, rounds=plan.rounds)
    goals = [Goal(beside="kafka", at_least=1.5)]
    yield throughput_row("produce 1 MB batches, TLS 1.3", produced, goals)
    goals = [Goal(beside="kafka", at_least=1.0)]
    yield throughput_row("fetch, 6 partitions, TLS 1.3", fetched, goals)


def round_trip(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """100 bytes, acks=1, through TLS 1.3."""
    shape = ["--batch-bytes", "100", "--record-bytes", "100", "--topic", TRIP_TOPIC]
    work = [*shape, "--count", str(plan.trips)]
    with _sealed(subjects) as sealed:
        for one in sealed.values():
            create_topic(one.server, TRIP_TOPIC, 1)
        runs = {name: _sealed_run(one, "round-trips", work) for name, one in sealed.items()}
        rounds = alternate(runs, rounds=plan.rounds)
    yield Row(
        work="one 100-byte record, TLS 1.3, round trip p50",
        unit="µs",
        rounds={name: [one.percentile_us(0.5) for one in found] for name, found in rounds.items()},
        goals=[Goal(beside="kafka", at_most=1.0)],
    )


def connects(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Whole handshakes of TLS 1.3 without resumption (P-256), a request each, four at a time."""
    work = ["--topic", "none", "--count", str(plan.connects)]
    with _sealed(subjects) as sealed:
        runs = {name: _sealed_run(one, "connects", work) for name, one in sealed.items()}
        rounds = alternate(runs, rounds=plan.rounds)
    yield Row(
        work="connects, TLS 1.3",
        unit="/s",
        rounds={name: [one.requests / one.seconds for one in got] for name, got in rounds.items()},
        goals=[Goal(beside="kafka", at_least=1.0)],
    )


def _sealed_run(sealed: SealedServer, work: str, arguments: list[str]) -> Run:
    return lambda: sealed.load(work, arguments)


def _sealed_writer(sealed: SealedServer, arguments: list[str]) -> Run:
    numbers = count()

    def run() -> Round:
        topic = f"bench-{next(numbers):03d}"
        create_topic(sealed.server, topic, 6)
        try:
            return sealed.load("produce", [*arguments, "--topic", topic])
        finally:
            delete_topic(sealed.server, topic)

    return run


@contextmanager
def _sealed(subjects: Subjects) -> Iterator[dict[str, SealedServer]]:
    """Each broker with the same key store and a listener of TLS beside the plain one."""
    directory = fresh(subjects.directory / "keys")
    authority = make_identity("authority")
    server = make_identity("server", issuer=authority)
    (directory / "ca.pem").write_bytes(authority.certificate_pem)
    (directory / "server.p12").write_bytes(server.pkcs12(STORE_PASSWORD))
    settings = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(directory / "server.p12"),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.enabled.protocols": "TLSv1.3",
    }
    makers: dict[str, Callable[[], BrokerProcess | KafkaProcess]] = {
        "penstock": lambda: subjects.penstock(settings)
    }
    if subjects.kafka_jars is not None:
        makers["kafka"] = lambda: subjects.kafka(settings)
    with ExitStack() as running:
        found = {}
        for name, make in makers.items():
            broker, port = make(), free_port()
            _listen_too(broker, f"SSL://{HOST}:{port}")
            running.enter_context(broker)
            broker.start()
            found[name] = SealedServer(broker, port, directory / "ca.pem")
        yield found


def _listen_too(broker: BrokerProcess | KafkaProcess, listener: str) -> None:
    plain = f"PLAINTEXT://{HOST}:{broker.port}"
    broker.settings["inter.broker.listener.name"] = "PLAINTEXT"
    if isinstance(broker, BrokerProcess):
        broker.settings["listeners"] = f"{plain},{listener}"
        return
    for key in ("listeners", "advertised.listeners"):
        broker.settings[key] += f",{listener}"
    broker.settings["listener.security.protocol.map"] = (
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL"
    )
