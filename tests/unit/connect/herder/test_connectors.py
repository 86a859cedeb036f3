"""When a connector is restarted because its secrets expire."""

import pytest

from penstock.config.settings import Password
from penstock.connect.herder.connectors import reload_ms
from penstock.connect.providers.contract import ConfigProvider


class Leases(ConfigProvider):
    """Secrets that hold for as long as their path says."""

    def read(self, path: str) -> dict[str, Password]:
        return {"key": Password("secret")}

    def ttl_ms(self, path: str) -> int | None:
        return int(path) if path else None


WORKER = {"config.providers": "lease", "config.providers.lease.class": f"{__name__}:Leases"}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"a": "${lease:300:key}", "b": "${lease:200:key}"}, 1200),
        ({"a": "${lease:300:key}", "config.action.reload": "none"}, None),
        ({"a": "${lease:key}"}, None),
        ({"a": "plain"}, None),
    ],
)
def test_the_first_secret_that_expires_says_when(
    config: dict[str, str], expected: int | None
) -> None:
    assert reload_ms(config, config, WORKER, 1000) == expected
