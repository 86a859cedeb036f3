"""What `penstock.spark` costs to import, and what a session is started with."""

import subprocess
import sys

import pytest

from penstock.spark.start.sessions import default_conf


def test_importing_the_package_and_its_options_loads_neither_spark_nor_arrow() -> None:
    code = (
        "import sys, penstock.spark, penstock.spark.options, penstock.client.wire.raw_cluster\n"
        "print([m for m in ('pyspark', 'pyarrow', 'numpy', 'confluent_kafka') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_package_offers_what_it_says() -> None:
    import penstock.spark

    assert callable(penstock.spark.session) and callable(penstock.spark.register)
    with pytest.raises(AttributeError, match="no attribute 'sessoin'"):
        penstock.spark.sessoin  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("master", "partitions"), [("local[3]", "3"), ("local[1]", "2"), ("local[4,2]", "4")]
)
def test_shuffles_have_about_as_many_partitions_as_there_are_cores(
    master: str, partitions: str
) -> None:
    assert default_conf(master)["spark.sql.shuffle.partitions"] == partitions


def test_checkpoints_by_rename_only_where_a_rename_is_atomic() -> None:
    name = "spark.sql.streaming.checkpointFileManagerClass"
    assert name in default_conf("local[2]") and name in default_conf("spark://a:7077")
    assert name not in default_conf("k8s://https://a")
