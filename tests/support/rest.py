"""The REST proxy as a real process, ready when it answers `/-/ready`."""

import http.client
from collections.abc import Mapping
from pathlib import Path

from tests.support.processes import HOST, ServerProcess, free_port, python

from penstock.config.properties import format_properties


class RestProcess(ServerProcess):
    """`penstock rest` on the brokers at `bootstrap`; settings override the defaults."""

    def __init__(
        self, directory: Path, bootstrap: str, settings: Mapping[str, str] | None = None
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.file = directory / "kafka-rest.properties"
        port = free_port()
        self.settings = {
            "listeners": f"http://{HOST}:{port}",
            "bootstrap.servers": f"PLAINTEXT://{bootstrap}",
            **(settings or {}),
        }
        command = [python(), "-m", "penstock.cli.main", "rest", str(self.file)]
        super().__init__(command, port=port, log_path=directory / "rest.log")

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def launch(self) -> None:
        """Start with the settings as they are now."""
        self.file.write_text(format_properties(self.settings))
        super().launch()

    def answers(self) -> bool:
        """Whether it is ready."""
        assert self.process is not None
        if self.process.poll() is not None:
            code = self.process.returncode
            raise RuntimeError(f"the REST proxy ended with code {code}:\n{self.log_end}")
        connection = http.client.HTTPConnection(HOST, self.port, timeout=20)
        try:
            connection.request("GET", "/-/ready")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()
