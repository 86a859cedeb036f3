"""Building the extension: it is built once, and set-up goes on where it cannot be."""

import os
import shutil
from pathlib import Path

import pytest

from penstock.native import FORM, NativeModule, build, load


def test_the_extension_is_of_the_form_that_python_asks_for(native: NativeModule) -> None:
    assert native.FORM == FORM


def test_without_a_compiler_setup_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert build.main(["--into", str(tmp_path)]) == 0
    assert "no C compiler" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_compiler_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: "false")
    monkeypatch.setattr(build, "_OPTIONS", ())
    (tmp_path / "Python.h").touch()
    monkeypatch.setattr(build.sysconfig, "get_path", lambda _name: str(tmp_path))
    assert build.main(["--into", str(tmp_path)]) == 0
    assert "cc failed" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["Python.h"]


def test_what_is_newer_than_its_source_is_not_built_again(tmp_path: Path) -> None:
    target = build.target_in(tmp_path)
    assert not build.is_current(target)
    target.touch()
    assert build.is_current(target)
    os.utime(target, (0, 0))
    assert not build.is_current(target)


def test_it_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_NATIVE", "0")
    assert load() is None
