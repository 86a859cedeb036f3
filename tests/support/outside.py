"""What comes from outside the repository: is it here, and if not, why not.

scripts/extras.py fetches kcat, KafkaJS, Apache Kafka's jars and franz-go and leaves a report; this
reads it and turns what is missing into a skip with the reason.
"""

import json
import shutil
from pathlib import Path

import pytest
from tests.support.processes import ROOT

REPORT = ROOT / ".cache" / "extras.json"


def missing(name: str) -> str:
    """Why the extra is not to be had; empty when it is."""
    if not REPORT.exists():
        return f"{name}: not fetched; `make test` or scripts/extras.py tries to"
    found = json.loads(REPORT.read_text()).get(name)
    if found is None:
        return f"{name}: not fetched; scripts/extras.py tries to"
    if found["reason"]:
        return f"{name}: {found['reason']}"
    return "" if shutil.which(found["path"]) or Path(found["path"]).is_dir() else f"{name}: gone"


def needs(name: str) -> Path:
    """Where the extra is; skips the test with the reason when it is missing."""
    reason = missing(name)
    if reason:
        pytest.skip(reason)
    return Path(json.loads(REPORT.read_text())[name]["path"])
