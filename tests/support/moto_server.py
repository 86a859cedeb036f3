"""moto as a process: S3 and DynamoDB as far as connectors need them, on a port of its own."""

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from tests.support.processes import ServerProcess, free_port, python

REGION = "us-east-1"


class MotoProcess(ServerProcess):
    """Ready when it lists its data; what it holds is gone when it stops."""

    def __init__(self, directory: Path) -> None:
        port = free_port()
        command = [python(), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        super().__init__(command, port=port, log_path=directory / "moto.log")

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def answers(self) -> bool:
        """Whether it is ready."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"moto ended:\n{self.log_end}")
        try:
            with urllib.request.urlopen(f"{self.url}/moto-api/data.json", timeout=20) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def client(self, service: str) -> Any:
        """boto3's own client of one of its services."""
        return boto3.client(
            service,
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )


@contextmanager
def moto_server(directory: Path) -> Iterator[MotoProcess]:
    """One that runs."""
    with MotoProcess(directory) as process:
        process.start()
        yield process
