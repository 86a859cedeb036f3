"""The project that is written for a new connector: it passes its own tests."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from penstock.connect.new_project import ProjectRefused, write_project

SOURCES = Path(__file__).resolve().parents[3] / "src"


def test_a_new_project_passes_its_own_tests_and_names_what_it_has(tmp_path: Path) -> None:
    files = write_project("weather-station", tmp_path)
    home = tmp_path / "weather-station"
    assert home / "src" / "weather_station" / "source.py" in files
    assert not any("@" in path.read_text().replace("@classmethod", "") for path in files)
    points = tomllib.loads((home / "pyproject.toml").read_text())["project"]["entry-points"]
    assert points["penstock.connectors"] == {
        "weather_station.WeatherStationSource": "weather_station.source:WeatherStationSource",
        "weather_station.WeatherStationSink": "weather_station.sink:WeatherStationSink",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


@pytest.mark.parametrize("name", ["", "Weather", "../x", "a b", "1a", "a--b"])
def test_a_name_that_cannot_be_a_package_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectRefused):
        write_project(name, tmp_path)


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(ProjectRefused, match="there already"):
        write_project("mine", tmp_path)
