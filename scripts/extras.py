"""Fetch what the compatibility tests and the bench want but can do without.

kcat, KafkaJS, Kerberos for Python, Apache Kafka's jars, franz-go and the servers that connectors
talk to come from Debian's, npm's, PyPI's, Maven's and Go's registries by package name. Each is
tried within a time limit, all at once, and ends in one printed line: ready, or the reason why it is
not to be had. Tests read the reasons from .cache/extras.json and skip with them. A failure is not
tried again for an hour, so that `make test` on a train stays quick.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
REPORT = CACHE / "extras.json"
RETRY_AFTER_S = 3600
FETCH_SECONDS_MAX = 240

NODE_PACKAGES = {
    "kafkajs": "2.2.4",
    "snappyjs": "0.7.0",
    "lz4-napi": "2.10.0",
    "zstd-codec": "0.1.5",
}
# Servers that tests talk to: Debian's package, and where its program lies.
# Installing one may start it, so only CI does that by itself; elsewhere what is installed is used.
SERVERS = {
    "postgresql": ("postgresql", "/usr/lib/postgresql/*/bin/postgres"),
    "mariadb": ("mariadb-server", "/usr/sbin/mariadbd"),
    "mosquitto": ("mosquitto", "/usr/sbin/mosquitto"),
    "redis": ("redis-server", "/usr/bin/redis-server"),
    "rabbitmq": ("rabbitmq-server", "/usr/sbin/rabbitmq-server"),
    "kerberos": ("krb5-admin-server", "/usr/sbin/kadmin.local"),  # Brings krb5kdc along.
}
# Each set is a folder of jars in .cache/java: an Apache Kafka that can serve, or a client alone.
JAR_SETS = {
    "kafka-4.3.1": [
        "org.apache.kafka:kafka_2.13:4.3.1",
        "org.apache.kafka:kafka-tools:4.3.1",
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.1",
        "org.apache.logging.log4j:log4j-core:2.25.1",
    ],
    "kafka-3.9.1": [
        "org.apache.kafka:kafka_2.13:3.9.1",
        "org.apache.kafka:kafka-tools:3.9.1",
        "org.slf4j:slf4j-reload4j:1.7.36",
    ],
    # Kafka Streams with its TopologyTestDriver, which judges the steps of ours.
    "kafka-streams-4.3.1": [
        "org.apache.kafka:kafka-streams:4.3.1",
        "org.apache.kafka:kafka-streams-test-utils:4.3.1",
        "org.slf4j:slf4j-nop:1.7.36",
    ],
    # MirrorMaker 2 with its client, which judges the topics that our mirror writes.
    "mirror-4.3.1": [
        "org.apache.kafka:connect-mirror:4.3.1",
        "org.slf4j:slf4j-nop:1.7.36",
    ],
    # The connectors of files with which Apache's Connect worker is compared to ours.
    "connect-file-4.3.1": ["org.apache.kafka:connect-file:4.3.1"],
    # Debezium, the largest family of Java connectors, with the API that a worker would bring.
    "debezium-postgres-3.2.0": [
        "io.debezium:debezium-connector-postgres:3.2.0.Final",
        "org.apache.kafka:connect-json:4.3.1",
        "org.apache.kafka:connect-transforms:4.3.1",
        "com.fasterxml.jackson.core:jackson-core:2.21.2",  # Else an older one is chosen.
        "com.fasterxml.jackson.datatype:jackson-datatype-jsr310:2.21.2",
        "org.slf4j:slf4j-nop:1.7.36",
    ],
    # OpenSearch without its distribution: a server, and the module that listens to HTTP.
    "opensearch-2.19.1": [
        "org.opensearch:opensearch:2.19.1",
        "org.opensearch:opensearch-plugin-classloader:2.19.1",
        "org.opensearch.plugin:transport-netty4-client:2.19.1",
        "org.apache.logging.log4j:log4j-core:2.21.0",
    ],
    # A NameNode and a DataNode, with what WebHDFS needs.
    "hadoop-3.4.1": [
        "org.apache.hadoop:hadoop-minicluster:3.4.1",
        "com.fasterxml.jackson.core:jackson-core:2.12.7",  # Else an older one is chosen.
    ],
    # Spark's own Kafka connector, of the release that pyproject.toml names.
    "spark-kafka": ["org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"],
    "clients-2.8.2": [
        "org.apache.kafka:kafka-clients:2.8.2",
        "com.fasterxml.jackson.core:jackson-databind:2.17.2",  # For OAUTHBEARER.
        "org.slf4j:slf4j-nop:1.7.36",
    ],
    "clients-0.10.2.2": [
        "org.apache.kafka:kafka-clients:0.10.2.2",
        "org.slf4j:slf4j-nop:1.7.36",
    ],
}
# Where a registry lacks a set: an older one that does the same, tried with the same release.
OLDER_SETS = {
    "spark-kafka": [
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    ],
}
# Spark's own description names a mirror of Central, which not every network lets through. Under the
# mirror's name this declares a repository without anything in it, so Central itself is asked.
POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>{name}</artifactId><version>1</version>
  <repositories>
    <repository>
      <id>gcs-maven-central-mirror</id><url>file:///nowhere</url>
      <releases><enabled>false</enabled></releases><snapshots><enabled>false</enabled></snapshots>
    </repository>
  </repositories>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
DEPENDENCY = (
    "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId>"
    "<version>{}</version></dependency>"
)


class Unavailable(Exception):
    """An extra that cannot be had here; the text is the reason."""


def run(command: list[str], *, cwd: Path = ROOT, seconds_max: float = FETCH_SECONDS_MAX) -> None:
    """Run to the end within the limit, or raise Unavailable with the last line printed."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds_max,
            text=True,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
    except FileNotFoundError:
        raise Unavailable(f"{name} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{name} did not finish within {seconds_max:.0f} s") from None
    if done.returncode != 0:
        words = " ".join(line.strip() for line in done.stdout.strip().splitlines()[-2:])
        raise Unavailable(f"{name} failed: {words[:200] or f'exit code {done.returncode}'}")


def fetch_kcat() -> str:
    """Debian's kcat, the command-line client on an older librdkafka."""
    if shutil.which("kcat") is None:
        apt_install("kcat")
    return str(shutil.which("kcat"))


def fetch_server(name: str) -> str:
    """A server that tests talk to; the path of its program."""
    package, program = SERVERS[name]
    if not (found := installed(program)):
        if not os.environ.get("CI"):
            raise Unavailable(f"it is not installed; run: sudo apt-get install {package}")
        apt_install(package)
        found = installed(program)
    if not found:
        raise Unavailable(f"{package} is installed without {program}")
    return found[-1]


def installed(program: str) -> list[str]:
    """The programs of a path with stars, the newest last."""
    return sorted(str(path) for path in Path("/").glob(program.removeprefix("/")))


def apt_install(package: str) -> None:
    """Install a package of Debian's; several may be asked for at once, and wait for each other."""
    limits = ["-o", "Acquire::http::Timeout=20", "-o", "DPkg::Lock::Timeout=200"]
    apt = [*as_root(package), "apt-get", "-qq", *limits]
    try:
        run([*apt, "install", "-y", "--no-install-recommends", package])
    except Unavailable:
        run([*apt, "update"])
        run([*apt, "install", "-y", "--no-install-recommends", package])


def fetch_gssapi() -> str:
    """Kerberos for Python (`penstock[kerberos]`), built with Debian's headers for it."""
    if importlib.util.find_spec("gssapi") is None:
        if shutil.which("krb5-config") is None:
            apt_install("libkrb5-dev")
        constraints = ["-c", str(ROOT / "constraints.txt")]
        run([sys.executable, "-m", "pip", "install", "-q", *constraints, "gssapi"])
    return str(CACHE)


def fetch_sasl_gssapi() -> str:
    """Debian's Kerberos plug-in for the librdkafka below kcat, unpacked into .cache/sasl."""
    home = CACHE / "sasl"
    if not list(home.rglob("libgssapiv2.so")):
        if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
            raise Unavailable("apt-get is not installed")
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        run(["apt-get", "-qq", "download", "libsasl2-modules-gssapi-mit"], cwd=home)
        for package in home.glob("*.deb"):
            run(["dpkg", "-x", str(package), str(home)])
    found = next(home.rglob("libgssapiv2.so"), None)
    if found is None:
        raise Unavailable("the package holds no libgssapiv2.so")
    return str(found.parent)


def as_root(package: str) -> list[str]:
    """The words before a command that needs root to install a package."""
    if shutil.which("apt-get") is None:
        raise Unavailable("apt-get is not installed")
    if os.geteuid() == 0:
        return []
    sudo = ["sudo", "-n"]
    if (
        shutil.which("sudo")
        and subprocess.run([*sudo, "true"], capture_output=True).returncode == 0
    ):
        return sudo
    raise Unavailable(f"installing it takes root; run: sudo apt-get install {package}")


def fetch_kafkajs() -> str:
    """KafkaJS and pure JavaScript codecs for it, into .cache/node."""
    home = CACHE / "node"
    wanted = [f"{name}@{version}" for name, version in NODE_PACKAGES.items()]
    mark = home / ".packages"
    if not (mark.exists() and mark.read_text() == "\n".join(wanted)):
        if shutil.which("node") is None:
            raise Unavailable("node is not installed")
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text('{"private": true}\n')
        quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"]
        run(["npm", "install", "--prefix", str(home), "--fetch-timeout=20000", *quiet, *wanted])
        mark.write_text("\n".join(wanted))
    return str(home)


def fetch_jars(name: str) -> str:
    """One set of jars with all they depend on, into .cache/java/NAME."""
    home = CACHE / "java" / name
    wanted = [JAR_SETS[name], *([OLDER_SETS[name]] if name in OLDER_SETS else [])]
    mark = home / ".packages"
    if mark.exists() and mark.read_text() in ["\n".join(one) for one in wanted]:
        return str(home)
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is not installed")
    for number, coordinates in enumerate(wanted, start=1):
        try:
            copy_jars(name, coordinates, home)
        except Unavailable:
            if number == len(wanted):
                raise
        else:
            mark.write_text("\n".join(coordinates))
            break
    return str(home)


def copy_jars(name: str, coordinates: list[str], home: Path) -> None:
    """Have Maven resolve the coordinates and copy all jars into a fresh folder."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    dependencies = "\n".join(DEPENDENCY.format(*c.split(":")) for c in coordinates)
    (home / "pom.xml").write_text(POM.format(name=name, dependencies=dependencies))
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    run(["mvn", "-q", "-B", goal, f"-DoutputDirectory={home}"], cwd=home)


def build_franz() -> str:
    """The tests' clients on franz-go, with what their go.sum names, into .cache/franz-go."""
    source = ROOT / "tests" / "faults" / "clients" / "franz"
    program = CACHE / "franz-go" / "fault-client"
    files = sorted(path for path in source.rglob("*") if path.suffix in (".go", ".mod", ".sum"))
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    mark = program.with_name(".source")
    if not (program.exists() and mark.exists() and mark.read_text() == wanted):
        program.parent.mkdir(parents=True, exist_ok=True)
        for package, name in ((".", program.name), ("./secured", "secured")):
            built = str(program.with_name(name))
            run(["go", "build", "-mod=readonly", "-o", built, package], cwd=source)
        mark.write_text(wanted)
    return str(program)


def server_fetcher(name: str) -> Callable[[], str]:
    """`fetch_server` for one of them."""
    return lambda: fetch_server(name)


def jar_fetcher(name: str) -> Callable[[], str]:
    """`fetch_jars` for one set."""
    return lambda: fetch_jars(name)


EXTRAS: dict[str, Callable[[], str]] = {
    "kcat": fetch_kcat,
    "gssapi": fetch_gssapi,
    "sasl-gssapi": fetch_sasl_gssapi,
    "kafkajs": fetch_kafkajs,
    "franz-go": build_franz,
    **{name: jar_fetcher(name) for name in JAR_SETS},
    **{name: server_fetcher(name) for name in SERVERS},
}


def attempt(name: str, before: dict[str, object]) -> dict[str, object]:
    """Fetch one extra, unless it failed a short while ago."""
    recent = time.time() - float(str(before.get("tried_s", 0))) < RETRY_AFTER_S
    if before.get("reason") and recent and not os.environ.get("CI"):
        return before
    try:
        return {"path": EXTRAS[name](), "reason": "", "tried_s": time.time()}
    except Unavailable as unavailable:
        return {"path": "", "reason": str(unavailable), "tried_s": time.time()}
    except OSError as error:
        return {"path": "", "reason": str(error), "tried_s": time.time()}


def chosen(only: str) -> list[str]:
    """The extras of one kind: `kcat`, `node`, `go`, `java`, or all when the kind is empty."""
    kinds = {"kcat": ["kcat"], "node": ["kafkajs"], "go": ["franz-go"], "java": list(JAR_SETS)}
    return kinds[only] if only else list(EXTRAS)


def main() -> None:
    """Try all at once, print a line each, leave the report for the tests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["kcat", "node", "go", "java"], default="")
    names = chosen(parser.parse_args().only)
    CACHE.mkdir(exist_ok=True)
    report = json.loads(REPORT.read_text()) if REPORT.exists() else {}
    with ThreadPoolExecutor(max_workers=3) as pool:
        results = pool.map(lambda name: attempt(name, report.get(name, {})), names)
    for name, result in zip(names, results, strict=True):
        report[name] = result
        print(f"extra {name}: {result['reason'] or 'ready'}")
    REPORT.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
    sys.exit(0)
