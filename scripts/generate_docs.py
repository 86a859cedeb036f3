"""Write the documents that are made from the sources: settings.md, support.md and api.md in docs.

`make docs` runs it, and a tidy test fails when a document is not what this would write.
"""

from pathlib import Path

from penstock.broker.dispatch import api_name, served_versions
from penstock.client.documented import api_document
from penstock.client.serialization import FORMATS
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
SUPPORT_LIMITS = """
Some of these are answered only as a broker without security or upgrades answers them: those of ACLs
with SECURITY_DISABLED, DescribeUserScramCredentials with nobody, and UpdateFeatures grants no other
level than the one that is on.
"""
SUPPORT_REST = """
Declared in `src/penstock/protocol`, and not served yet, so not advertised either. Who asks for
share or streams groups all the same is told UNSUPPORTED_VERSION; all else closes the connection.
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
    return SUPPORT_HEAD + "".join(rows) + SUPPORT_LIMITS + rest


def documents() -> dict[str, str]:
    """Each document by its name in docs/."""
    return {
        "settings.md": settings_document(),
        "support.md": support_document(),
        "api.md": api_document(FORMATS),
    }


def main() -> None:
    """Write the documents that changed."""
    for name, text in documents().items():
        path = ROOT / "docs" / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
