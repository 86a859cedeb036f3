"""Clients of AWS and of what speaks its protocol: credentials, retries, and what its errors mean.

boto3 is an extra of the installation, so it is imported only where a client is made.
"""

import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from penstock.connect.errors.kinds import ConnectError, RetriableConnectError
from penstock.connect.plugins.config_def import ConfigDef, ConfigEntry, ConfigType, Importance

MISSING = "boto3 is not installed; run: pip install 'penstock[connectors]'"
_CONNECT_S, _READ_S = 10, 60
_PASSING = frozenset(
    {
        "RequestTimeout",
        "RequestTimeTooSkewed",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ProvisionedThroughputExceededException",
        "LimitExceededException",
        "InternalError",
        "InternalServerError",
        "ServiceUnavailable",
    }
)

CREDENTIALS_CONFIG = ConfigDef(
    ConfigEntry(
        "aws.access.key.id",
        ConfigType.STRING,
        "",
        Importance.HIGH,
        "The id of an access key. Without it, the environment and the machine are asked, as AWS's "
        "own tools do it.",
    ),
    ConfigEntry(
        "aws.secret.access.key",
        ConfigType.PASSWORD,
        None,
        Importance.HIGH,
        "The secret of the access key.",
    ),
)


def has_boto() -> bool:
    """Whether the library is there."""
    return importlib.util.find_spec("boto3") is not None


def half_credentials(values: Mapping[str, Any]) -> str | None:
    """What is wrong with credentials of which one half is given; None: nothing."""
    has_id, has_secret = values.get("aws.access.key.id"), values.get("aws.secret.access.key")
    if bool(has_id) == bool(has_secret):
        return None
    return "aws.access.key.id and aws.secret.access.key are given together, or neither of them."


def aws_client(
    service: str, config: Mapping[str, Any], *, region: str, url: str, attempts: int, **more: Any
) -> Any:
    """A client of a service; `more` goes to botocore's own settings."""
    if not has_boto():
        raise ConnectError(MISSING)
    import boto3
    from botocore.config import Config as BotoConfig

    own = BotoConfig(
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        retries={"total_max_attempts": max(1, attempts), "mode": "standard"},
        **more,
    )
    secret = config["aws.secret.access.key"]
    return boto3.session.Session().client(
        service,
        region_name=region,
        endpoint_url=url or None,
        aws_access_key_id=config["aws.access.key.id"] or None,
        aws_secret_access_key=str(secret) if secret else None,
        config=own,
    )


@contextmanager
def aws_errors(what: str) -> Iterator[None]:
    """What boto3 raises, as errors of Connect: those that may pass are told apart."""
    from botocore import exceptions as boto

    try:
        yield
    except boto.ClientError as error:
        told = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        is_passing = status >= 500 or status == 429 or told.get("Code") in _PASSING
        kind = RetriableConnectError if is_passing else ConnectError
        raise kind(f"{what} failed: {error}") from error
    except (boto.ConnectionError, boto.HTTPClientError) as error:
        raise RetriableConnectError(f"{what} failed: {error}") from error
    except boto.BotoCoreError as error:
        raise ConnectError(f"{what} failed: {error}") from error
