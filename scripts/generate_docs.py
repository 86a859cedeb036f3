"""Write the documents that are made from tables: docs/settings.md and docs/support.md.

`make docs` runs it, and a tidy test fails when a document is not what this would write.
"""

from pathlib import Path

from penstock.broker.dispatch import api_name, served_versions
from penstock.config.documented import settings_document
from penstock.protocol.apis import PUBLIC_KEYS, supported_versions

ROOT = Path(__file__).resolve().parent.parent
SUPPORT_HEAD = """\
# What the broker serves

This page is written by `make docs` from the dispatch table in `src/penstock/broker/dispatch.py`,
which is also what the broker answers to ApiVersions. The versions are those of Apache Kafka 3.9 and
4.3 together, so that clients from 0.10 to today find theirs.

| API | key | versions |
| --- | ---: | --- |
"""
SUPPORT_REST = """
Declared in `src/penstock/protocol`, and not served yet, so not advertised either:
"""


def support_document() -> str:
    """The APIs that are served, and those that only the codecs know."""
    served = served_versions()
    rows = [
        f"| {api_name(key)} | {int(key)} | {versions[0]} to {versions[-1]} |\n"
        for key, versions in sorted(served.items())
    ]
    others = [api_name(key) for key in PUBLIC_KEYS if key not in served and supported_versions(key)]
    rest = f"{SUPPORT_REST}{', '.join(others)}.\n" if others else ""
    return SUPPORT_HEAD + "".join(rows) + rest


def documents() -> dict[str, str]:
    """Each document by its name in docs/."""
    return {"settings.md": settings_document(), "support.md": support_document()}


def main() -> None:
    """Write the documents that changed."""
    for name, text in documents().items():
        path = ROOT / "docs" / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
