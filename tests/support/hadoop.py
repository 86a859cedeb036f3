"""HDFS as two processes from its jars: a NameNode and a DataNode, with WebHDFS."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.outside import needs
from tests.support.processes import HOST, ServerProcess, free_port

JARS = "hadoop-3.4.1"
_SERVER = "org.apache.hadoop.hdfs.server"
_NAME_NODE, _DATA_NODE = f"{_SERVER}.namenode.NameNode", f"{_SERVER}.datanode.DataNode"


class HadoopProcess(ServerProcess):
    """One of the two; ready when its web server answers."""

    def __init__(self, home: Path, jars: Path, main: str, port: int) -> None:
        memory = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        own = [f"-Dhadoop.log.dir={home}", "-cp", f"{home / 'conf'}:{jars}/*"]
        super().__init__(
            ["java", *memory, *own, main], port=port, log_path=home / f"{main.split('.')[-1]}.log"
        )

    def answers(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"it ended:\n{self.log_end}")
        return self.bean("Hadoop:service=*Node,name=*Info") is not None

    def bean(self, name: str) -> dict[str, Any] | None:
        """What it tells of itself; None: nothing yet."""
        try:
            url = f"http://{self.address}/jmx?qry={name}"
            with urllib.request.urlopen(url, timeout=20) as answer:
                beans = json.loads(answer.read())["beans"]
        except (OSError, ValueError):
            return None
        return beans[0] if beans else None


def _site(values: dict[str, str]) -> str:
    rows = (f"<property><name>{k}</name><value>{v}</value></property>" for k, v in values.items())
    return f"<configuration>{''.join(rows)}</configuration>"


@contextmanager
def hdfs_cluster(home: Path) -> Iterator[tuple[str, HadoopProcess]]:
    """The address of WebHDFS and the DataNode; skips where the jars are not to be had."""
    jars = needs(JARS)
    (home / "conf").mkdir()
    web, data_web = free_port(), free_port()
    rpc = f"hdfs://{HOST}:{free_port()}"
    (home / "conf" / "core-site.xml").write_text(_site({"fs.defaultFS": rpc}))
    (home / "conf" / "hdfs-site.xml").write_text(
        _site(
            {
                "dfs.replication": "1",
                "dfs.permissions.enabled": "false",
                "dfs.namenode.name.dir": str(home / "names"),
                "dfs.datanode.data.dir": str(home / "data"),
                "dfs.namenode.http-address": f"{HOST}:{web}",
                "dfs.datanode.http.address": f"{HOST}:{data_web}",
                "dfs.datanode.address": f"{HOST}:{free_port()}",
                "dfs.datanode.ipc.address": f"{HOST}:{free_port()}",
                "dfs.datanode.hostname": HOST,
                "dfs.namenode.safemode.threshold-pct": "0",
            }
        )
    )
    names = HadoopProcess(home, jars, _NAME_NODE, web)
    format_words = [*names.command, "-format", "-nonInteractive"]
    subprocess.run(format_words, check=True, capture_output=True, timeout=300)
    with names, HadoopProcess(home, jars, _DATA_NODE, data_web) as data:
        names.start(timeout_s=300)
        data.start(timeout_s=300)
        yield f"webhdfs://{HOST}:{web}", data
