"""How the Python processes of Spark are started, and what they find on their path."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.spark.start.sessions import default_conf
from penstock.spark.start.worker_start import worker_environment


def zips() -> list[str]:
    import pyspark

    home = Path(pyspark.__file__).parent
    return [*map(str, (home / "python" / "lib").glob("*.zip"))]


def test_a_process_of_this_machine_starts_without_sparks_zips_and_keeps_the_rest(
    tmp_path: Path,
) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "mine.py").write_text("")
    path = os.pathsep.join([*zips(), "/no/spark-core_2.13-4.3.0.jar", str(tmp_path / "a b")])
    environment = worker_environment(is_here=True)
    code = "import mine, pyspark, sys; print(pyspark.__file__); print(sys.executable, sys.path)"
    done = subprocess.run(
        [environment["PYSPARK_PYTHON"], "-c", code],
        env={**os.environ, **environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    import pyspark

    found, rest = done.stdout.splitlines()
    assert found == pyspark.__file__, done.stderr
    assert rest.startswith(sys.executable)
    assert "spark-core" not in rest and ".zip/" not in rest and "pyspark.zip" not in rest


def test_machines_of_a_cluster_get_the_interpreter_itself() -> None:
    assert worker_environment(is_here=False)["PYSPARK_PYTHON"] == sys.executable
    chosen = worker_environment("/opt/python", is_here=True)
    assert chosen["PYSPARK_PYTHON"] == "/opt/python"


@pytest.mark.parametrize(("master", "is_ours"), [("local[2]", True), ("spark://a:7077", False)])
def test_only_workers_of_this_machine_are_forked_from_our_daemon(
    master: str, is_ours: bool
) -> None:
    assert ("spark.python.daemon.module" in default_conf(master)) is is_ours
