"""Files of pipelines: found, loaded, and their mistakes told with the line."""

from pathlib import Path

import pytest

from penstock.errors import CommandError
from penstock.pipelines.files import load_file, load_files, module_of

GOOD = """
from penstock.pipelines import Topic, pipeline

@pipeline(inputs=Topic("a"), output=Topic("b"))
def copy(rows):
    return rows
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_file_gives_the_pipelines_at_its_top_level(tmp_path: Path) -> None:
    one, two = load_file(
        written(tmp_path, "p.py", GOOD + GOOD[GOOD.index("@") :].replace("copy", "again"))
    )
    assert [one.name, two.name] == ["copy", "again"]
    assert module_of(one) is module_of(two) is not None


def test_a_file_named_like_a_library_hides_nothing(tmp_path: Path) -> None:
    import json

    load_file(written(tmp_path, "json.py", GOOD))
    import json as after

    assert after is json


def test_a_file_beside_it_can_be_imported(tmp_path: Path) -> None:
    written(tmp_path, "beside_the_pipeline.py", "NAME = 'given'")
    text = "from beside_the_pipeline import NAME\n" + GOOD.replace('"b"', "NAME")
    (one,) = load_file(written(tmp_path, "p.py", text))
    assert one.outputs[0].label == "given"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "declares no pipeline"),
        ("x = 1\ny = (\n", "p.py:2"),
        ("\n\n1/0\n", "p.py:3: ZeroDivisionError"),
        (GOOD.replace('output=Topic("b")', 'output=Topic("b"), mode="x"'), "mode='x'"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(CommandError) as told:
        load_file(written(tmp_path, "p.py", text))
    assert words in str(told.value)
    assert "\n" not in str(told.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"nowhere\.py is not a file"):
        load_file(tmp_path / "nowhere.py")


def test_two_pipelines_of_one_name_are_refused(tmp_path: Path) -> None:
    files = [written(tmp_path, "one.py", GOOD), written(tmp_path, "two.py", GOOD)]
    with pytest.raises(CommandError, match="Two pipelines are called 'copy'"):
        load_files(files)
