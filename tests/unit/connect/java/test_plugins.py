"""Java connectors are found in jars without a JVM, and ours come first."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.connect.errors.kinds import ConnectError, UnknownPlugin
from penstock.connect.java.plugins import offer_java
from penstock.connect.plugins import lookup
from penstock.connect.plugins.lookup import PluginKind, find_plugin, plugin_documents

_SERVICE = "META-INF/services/org.apache.kafka.connect.source.SourceConnector"
_FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.fixture(autouse=True)
def nothing_stays_offered() -> Iterator[None]:
    yield
    lookup._OFFERED.clear()
    lookup.plugins.cache_clear()


def jar(path: Path, *classes: str, listed: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name in classes:
            archive.writestr(f"{name.replace('.', '/')}.class", b"")
        if listed:
            archive.writestr(_SERVICE, listed)
    return path


def found(name: str) -> lookup.Plugin:
    return find_plugin(PluginKind.CONNECTOR, name)


def test_connectors_are_listed_by_the_service_files_of_their_jars(tmp_path: Path) -> None:
    jar(tmp_path / "a" / "acme-1.2.jar", listed="# ours\ncom.acme.AcmeSource # good\n\n")
    jar(tmp_path / "a" / "lib" / "more.jar")
    jar(tmp_path / "b" / "file-9.jar", listed=_FILE)
    (tmp_path / "b" / "broken.jar").write_bytes(b"no jar")
    offer_java({"plugin.path": f"{tmp_path}, {tmp_path / 'missing'}"})
    documents = {one["class"]: one for one in plugin_documents()}
    assert documents["com.acme.AcmeSource"] == {
        "class": "com.acme.AcmeSource",
        "type": "source",
        "version": "1.2",
    }
    assert documents[_FILE]["version"] != "9" and documents[f"java:{_FILE}"]["version"] == "9"
    assert found("AcmeSource").load().java.jars == (
        tmp_path / "a" / "acme-1.2.jar",
        tmp_path / "a" / "lib" / "more.jar",
    )
    assert found(_FILE).target.startswith("penstock.")
    assert found(f"java:{_FILE}").load().java.name == _FILE


def test_a_class_that_is_not_listed_is_found_by_its_whole_name(tmp_path: Path) -> None:
    shared = jar(tmp_path / "shared" / "connect-api.jar")
    jar(tmp_path / "plugins" / "acme.jar", "com.acme.Hidden")
    settings = {
        "plugin.path": str(tmp_path / "plugins"),
        "penstock.connect.java.path": str(shared.parent),
        "penstock.connect.java.options": "-Xmx1g -Dx=y",
    }
    offer_java(settings)
    java = found("com.acme.Hidden").load().java
    assert [one.name for one in java.jars] == ["acme.jar", "connect-api.jar"]
    assert java.options == ("-Xmx1g", "-Dx=y") and java.version == "undefined"
    with pytest.raises(UnknownPlugin, match=r"com\.acme\.Nowhere"):
        found("com.acme.Nowhere")


def test_jars_without_kafkas_api_say_what_is_missing(tmp_path: Path) -> None:
    jar(tmp_path / "acme.jar", "com.acme.Hidden")
    offer_java({"plugin.path": str(tmp_path)})
    with pytest.raises(ConnectError, match=r"connect-api.*penstock\.connect\.java\.path"):
        found("com.acme.Hidden").load().config_def()
