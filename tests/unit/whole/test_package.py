"""`import penstock`: everything it offers can be seen, and costs nothing until it is used."""

import rlcompleter
import subprocess
import sys

import pytest

import penstock


def test_dir_and_tab_completion_show_the_clients_before_they_are_loaded() -> None:
    script = (
        "import sys, penstock; names = dir(penstock); "
        "assert 'confluent_kafka' not in sys.modules; print(*names)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    names = done.stdout.split()
    assert sorted(name for name in names if name[0] != "_") == sorted(
        name for name in penstock.__all__ if name[0] != "_"
    )
    completer = rlcompleter.Completer({"penstock": penstock})
    completed = [completer.complete("penstock.Prod", state) for state in range(2)]
    assert [str(word).rstrip("()") for word in completed] == [
        "penstock.Producer",
        "penstock.ProducerRecord",
    ]


@pytest.mark.parametrize("name", penstock.__all__)
def test_what_is_listed_is_there(name: str) -> None:
    assert getattr(penstock, name) is not None


def test_what_is_not_there_is_an_attribute_error_in_pythons_words() -> None:
    with pytest.raises(AttributeError, match="module 'penstock' has no attribute 'Konsumer'"):
        penstock.Konsumer  # noqa: B018
