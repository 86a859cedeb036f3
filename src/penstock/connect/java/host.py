"""A JVM for one Java plug-in: started with its jars, called through py4j, ended with its owner.

Each JVM has the jars of one plug-in alone, so plug-ins with different versions of a library do not
meet, and none of them meets Spark's. It ends when the pipe to its owner breaks, however that ended.
"""

import logging
import zipfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.connect.errors.kinds import ConnectError, DataError, RetriableConnectError
from penstock.errors import ConfigError
from penstock.java import find_java_home

log = logging.getLogger("penstock.connect.java")
_API = "org/apache/kafka/connect/source/SourceConnector.class"
_OURS = ("py4j-*.jar", "janino-*.jar", "commons-compiler-*.jar")
_TRACE_LETTERS_MAX = 20_000
_LINES_MAX = 100
_ENDING_S = 10.0
_KINDS: dict[str, type[Exception]] = {
    "retriable": RetriableConnectError,
    "data": DataError,
    "config": ConfigError,
}


class _JavaOutput(deque[str]):
    """The last lines that a JVM printed; all of them go to the log as they come."""

    def __init__(self) -> None:
        super().__init__(maxlen=_LINES_MAX)

    def appendleft(self, line: str) -> None:
        """Called by py4j for each line."""
        log.debug("%s", line.rstrip())
        super().appendleft(line)

    def text(self) -> str:
        """In the order in which they were printed."""
        return "".join(reversed(self))[-_TRACE_LETTERS_MAX:]


class JavaHost:
    """A JVM that runs; `bridge` makes what calls a connector or a task."""

    def __init__(self, jars: Sequence[Path], options: Sequence[str]) -> None:
        from py4j.java_gateway import (  # type: ignore[import-untyped]
            GatewayParameters,
            JavaGateway,
            launch_gateway,
        )
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        if not any(_has_api(jar) for jar in jars):
            raise ConnectError(
                "Java connectors need Kafka's connect-api and kafka-clients, which the plug-in does"
                " not bring. Put the jars into a folder, and name it in penstock.connect.java.path."
            )
        first, *rest = _own_jars()
        self._output = _JavaOutput()
        try:
            port, token, self._process = launch_gateway(
                jarpath=str(first),
                classpath=":".join(str(one) for one in (*rest, *jars)),
                javaopts=list(options),
                java_path=str(find_java_home(needed_by="A Java connector") / "bin" / "java"),
                die_on_exit=True,
                create_new_process_group=True,  # Ctrl-C is the worker's, which ends us in order.
                enable_auth=True,
                redirect_stdout=self._output,
                redirect_stderr=self._output,
                return_proc=True,
            )
        except (Py4JError, ValueError, OSError) as error:
            raise ConnectError(
                f"No JVM could be started: {error}. {self._output.text()}"
            ) from error
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port, auth_token=token)
        )
        try:
            self._bridges = self._compiled()
        except BaseException:
            self.close()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether the JVM runs."""
        return bool(self._process.poll() is None)

    def bridge(self, connector: str) -> Any:
        """An object of Bridge.java for a connector's class; ConnectError if it is no source."""
        with self.errors(f"loading {connector}"):
            kinds = self._gateway.new_array(self._gateway.jvm.java.lang.Class, 1)
            kinds[0] = self._gateway.jvm.java.lang.Class.forName("java.lang.String")
            given = self._gateway.new_array(self._gateway.jvm.java.lang.Object, 1)
            given[0] = connector
            return self._bridges.getConstructor(kinds).newInstance(given)

    @contextmanager
    def errors(self, what: str) -> Iterator[None]:
        """What Java throws, as errors of Connect with Java's trace."""
        from py4j.protocol import Py4JError, Py4JJavaError

        try:
            yield
        except Py4JJavaError as error:
            kind, trace = self._told(error.java_exception)
            raise _KINDS.get(kind, ConnectError)(f"{what} failed in Java: {trace}") from None
        except (Py4JError, OSError) as error:
            state = "runs" if self.is_alive else f"ended with {self._process.returncode}"
            raise ConnectError(
                f"{what} failed: the JVM {state}: {error}. {self._output.text()}"
            ) from error

    def close(self) -> None:
        """End the JVM."""
        self._gateway.shutdown()
        self._process.stdin.close()  # It watches the pipe, and exits.
        try:
            self._process.wait(_ENDING_S)
        except Exception:  # noqa: BLE001  (whatever keeps it from ending, it must end)
            self._process.kill()
            self._process.wait()

    def _compiled(self) -> Any:
        with self.errors("compiling the bridge"):
            compiler = self._gateway.jvm.org.codehaus.janino.SimpleCompiler()
            compiler.cook((files(__package__) / "Bridge.java").read_text())
            return compiler.getClassLoader().loadClass("penstock.Bridge")

    def _told(self, error: Any) -> tuple[str, str]:
        """Its kind and its trace, as far as the JVM can still tell."""
        from py4j.protocol import Py4JError

        while error.getClass().getName() == "java.lang.reflect.InvocationTargetException":
            error = error.getCause()
        try:
            kind = str(self._static("kindOf", error))
            return kind, str(self._static("traceOf", error))[:_TRACE_LETTERS_MAX]
        except (AttributeError, Py4JError):  # The bridge itself was not compiled.
            return "other", str(error)[:_TRACE_LETTERS_MAX]

    def _static(self, name: str, error: Any) -> Any:
        jvm = self._gateway.jvm
        kinds = self._gateway.new_array(jvm.java.lang.Class, 1)
        kinds[0] = jvm.java.lang.Class.forName("java.lang.Throwable")
        given = self._gateway.new_array(jvm.java.lang.Object, 1)
        given[0] = error
        return self._bridges.getMethod(name, kinds).invoke(None, given)


def _own_jars() -> list[Path]:
    """py4j and the compiler, of those that come with Spark."""
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise ConnectError("Java connectors need Spark's jars, and pyspark is not installed here.")
    folder = Path(spark.origin).parent / "jars"
    found = [next(iter(sorted(folder.glob(pattern))), None) for pattern in _OURS]
    if None in found:
        raise ConnectError(f"Java connectors need {', '.join(_OURS)} of Spark, not in {folder}.")
    return [one for one in found if one is not None]


def _has_api(jar: Path) -> bool:
    try:
        with zipfile.ZipFile(jar) as archive:
            return _API in archive.NameToInfo
    except (OSError, zipfile.BadZipFile):
        return False
