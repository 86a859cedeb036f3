"""Where the processes of one machine have their directories."""

from pathlib import Path

from penstock.config.processes import left_out, left_out_sentence, process_count, process_dir


def test_the_first_process_has_what_a_broker_alone_has(tmp_path: Path) -> None:
    assert process_dir(tmp_path, 0) == tmp_path
    assert process_dir(tmp_path, 2) == tmp_path / "penstock-processes" / "2"


def test_a_directory_tells_how_many_were_at_work(tmp_path: Path) -> None:
    assert process_count([tmp_path]) == 0
    (tmp_path / "meta.properties").touch()
    assert process_count([tmp_path]) == 1
    for name in ("logs", "run", "1", "2"):
        (tmp_path / "penstock-processes" / name).mkdir(parents=True)
    assert process_count([tmp_path]) == 3


def test_only_partitions_keep_a_process_from_being_left_out(tmp_path: Path) -> None:
    second = process_dir(tmp_path, 1)
    second.mkdir(parents=True)
    (second / "meta.properties").touch()
    assert left_out([tmp_path], 1) is None
    (second / "orders-12").mkdir()
    assert left_out([tmp_path], 1) == second
    assert left_out([tmp_path], 2) is None
    assert "start with --processes 2" in left_out_sentence(second, 1)
