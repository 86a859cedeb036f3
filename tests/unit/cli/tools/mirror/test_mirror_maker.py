"""The first MirrorMaker's options, as settings of ours."""

from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.cli.tools.mirror.mirror_maker import config_of, options_of
from penstock.mirror.policies import IdentityPolicy


def files(tmp_path: Path, consumer: str, producer: str) -> list[str]:
    words = []
    for name, text in (("consumer", consumer), ("producer", producer)):
        (tmp_path / name).write_text(text)
        words += [f"--{name}.config", str(tmp_path / name)]
    return words


def test_names_stay_and_reading_begins_at_the_end(tmp_path: Path) -> None:
    words = files(
        tmp_path,
        "bootstrap.servers=a:1\ngroup.id=g\nsecurity.protocol=SSL\n",
        "bootstrap.servers=b:1\nacks=all\n",
    )
    config = config_of(options_of([*words, "--include", "orders|pay.*", "--num.streams", "4"]))
    (flow,) = config.flows
    assert (flow.policy, flow.tasks_max, config.beats) == (IdentityPolicy("."), 4, ())
    assert flow.topics.takes("payments") and not flow.topics.takes("heartbeats")
    assert not (flow.emit_checkpoints or flow.emit_offset_syncs or flow.sync_topic_configs)
    reading = config.client("source", "consumer")
    assert (reading["auto.offset.reset"], reading["security.protocol"]) == ("latest", "SSL")
    assert config.client("target", "admin") == {"bootstrap.servers": "b:1"}
    assert config.unused == ("source.consumer.group.id", "target.producer.acks")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--include", "x"], "consumer.config"),
        (["--consumer.config", "c", "--producer.config", "p"], "by --include alone"),
    ],
)
def test_what_is_missing_is_told(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["mirror-maker", *words])
    assert ended.value.code == 1
    assert sentence in capsys.readouterr().err


def test_a_file_without_brokers_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = files(tmp_path, "group.id=g\n", "bootstrap.servers=b:1\n")
    assert main(["mirror-maker", *words, "--include", "x"]) == 1
    assert "--consumer.config: bootstrap.servers is missing" in capsys.readouterr().err
