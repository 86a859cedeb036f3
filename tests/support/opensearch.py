"""OpenSearch as a process, put together from its jars: no distribution, no download of a tarball.

It refuses to run as root, and wants its HTTP module in a folder of its own with a descriptor and a
policy, which its distribution would bring.
"""

import os
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.outside import needs
from tests.support.processes import HOST, ServerProcess, free_port

JARS = "opensearch-2.19.1"
_NOBODY = 65534
_DESCRIPTOR = """\
description=HTTP and transport by netty
version=2.19.1
name=transport-netty4
classname=org.opensearch.transport.Netty4Plugin
java.version=11
opensearch.version=2.19.1
extended.plugins=
has.native.controller=false
"""
_POLICY = """\
grant {
  permission java.lang.RuntimePermission "accessDeclaredMembers";
  permission java.net.SocketPermission "*", "accept,connect,listen,resolve";
  permission java.lang.reflect.ReflectPermission "suppressAccessChecks";
};
"""


class OpenSearchProcess(ServerProcess):
    """One node without security; ready when it answers."""

    def __init__(self, directory: Path, jars: Path) -> None:
        port = free_port()
        self.home = directory
        _lay_out(directory, jars, port)
        super().__init__(_command(directory), port=port, log_path=directory / "log.txt")

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def answers(self) -> bool:
        """Whether the node is up."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"OpenSearch ended:\n{self.log_end}")
        try:
            with urllib.request.urlopen(f"{self.url}/_cluster/health", timeout=20) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _lay_out(home: Path, jars: Path, port: int) -> None:
    module = home / "modules" / "transport-netty4"
    for folder in (home / "config", home / "lib", home / "plugins", home / "logs", module):
        folder.mkdir(parents=True)
    for jar in jars.glob("*.jar"):
        is_module = jar.name.startswith(("netty-", "transport-netty4-client"))
        if is_module:
            shutil.copy(jar, module)  # Its policy lets it read its own folder alone.
        else:
            (home / "lib" / jar.name).symlink_to(jar.resolve())
    (module / "plugin-descriptor.properties").write_text(_DESCRIPTOR)
    (module / "plugin-security.policy").write_text(_POLICY)
    (home / "config" / "opensearch.yml").write_text(
        f"network.host: {HOST}\nhttp.port: {port}\ntransport.port: {free_port()}\n"
        "discovery.type: single-node\nnode.name: one\n"
        "cluster.routing.allocation.disk.threshold_enabled: false\n"
    )
    (home / "config" / "log4j2.properties").write_text(
        "appender.out.type = Console\nappender.out.name = out\nappender.out.layout.type = "
        "PatternLayout\nappender.out.layout.pattern = %p %c %m%n\nrootLogger.level = warn\n"
        "rootLogger.appenderRef.out.ref = out\n"
    )
    if os.geteuid() == 0:
        for path in (home, *home.rglob("*")):
            os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)


def _command(home: Path) -> list[str]:
    ids = [f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
    as_nobody = ["setpriv", *ids] if os.geteuid() == 0 else []
    memory = ["-Xms300m", "-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    own = [f"-Dopensearch.path.home={home}", f"-Dopensearch.path.conf={home / 'config'}"]
    more = [
        "-Djava.security.manager=allow",
        "-Dlog4j2.disable.jmx=true",
        f"-Djava.io.tmpdir={home / 'logs'}",
    ]
    main = ["-cp", f"{home / 'lib'}/*", "org.opensearch.bootstrap.OpenSearch"]
    return [*as_nobody, "java", *memory, *more, *own, *main]


@contextmanager
def opensearch_server() -> Iterator[OpenSearchProcess]:
    """One that runs; skips with the reason where the jars are not to be had."""
    jars = needs(JARS)
    home = Path(tempfile.mkdtemp(prefix="opensearch-"))  # pytest's own are closed to others.
    home.chmod(0o755)
    try:
        with OpenSearchProcess(home, jars) as process:
            process.start(timeout_s=300)  # A JVM on a machine that has other work.
            yield process
    finally:
        shutil.rmtree(home, ignore_errors=True)
