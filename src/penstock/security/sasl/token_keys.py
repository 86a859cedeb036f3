"""Which bearer tokens are believed, and the keys that sign them.

Keys come from a URL, at the start, then again and again in a task; no login ever waits for them. A
token that names a key nobody knows brings the next fetch forward.
"""

import asyncio
import logging
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from penstock.errors import ConfigError
from penstock.security.sasl.web_tokens import (
    KeySet,
    ReadToken,
    TokenRules,
    UnknownKey,
    WebTokenRefused,
    read_unsecured,
)

log = logging.getLogger("kafka.server.KafkaServer")

_KEYS_BYTES_MAX: Final = 1 << 20
_FETCH_S: Final = 10.0
_FETCH_AGAIN_S: Final = 10.0  # For keys that nobody knows, at most so often.


class BearerTokens:
    """Says of each token whether it is good."""

    def __init__(
        self,
        rules: TokenRules,
        *,
        now_ms: Callable[[], int],
        url: str | None = None,  # None: tokens are not signed, and believed all the same.
        refresh_s: float = 3600.0,
        retry_s: tuple[float, float] = (0.1, 10.0),
    ) -> None:
        self._rules = rules
        self._now_ms = now_ms
        self._url = url
        self._refresh_s = refresh_s
        self._retry_s = retry_s
        self._keys: KeySet | None = None  # None: not there yet, so nobody is believed.
        self._is_wanted = asyncio.Event()
        self._fetched_s = -_FETCH_AGAIN_S

    def validate(self, token: str) -> ReadToken:
        """What a good token says; WebTokenRefused for any other."""
        try:
            if self._url is None:
                return read_unsecured(token, self._rules, now_ms=self._now_ms())
            if self._keys is None:
                raise UnknownKey("the keys are not there yet")
            return self._keys.read(token, self._rules, now_ms=self._now_ms())
        except WebTokenRefused as refused:
            if isinstance(refused, UnknownKey):
                self._is_wanted.set()
            raise

    async def keep_fresh(self) -> None:
        """Fetch the keys now and then, for as long as the process runs."""
        if self._url is None:
            return
        pause_s = self._retry_s[0]
        while True:
            self._is_wanted.clear()
            if await self._fetch():
                pause_s, wait_s = self._retry_s[0], self._refresh_s
            else:
                wait_s = pause_s
                pause_s = min(pause_s * 2, self._retry_s[1])
            await self._rest(wait_s)

    async def _rest(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                await self._is_wanted.wait()
                since_s = time.monotonic() - self._fetched_s
                await asyncio.sleep(max(0.0, _FETCH_AGAIN_S - since_s))
        except TimeoutError:
            pass

    async def _fetch(self) -> bool:
        assert self._url is not None
        self._fetched_s = time.monotonic()
        try:
            self._keys = KeySet.parse(await asyncio.to_thread(_read_url, self._url))
        except (OSError, ConfigError, ValueError) as error:
            log.warning("The keys of %s could not be read: %s", self._url, error)
            return False
        return True


def check_keys_url(setting: str, url: str) -> None:
    """ConfigError for a URL that keys cannot come from."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "file"):
        raise ConfigError(f"{setting}={url}: write https://..., http://... or file:/...")


def _read_url(url: str) -> bytes:
    parts = urlsplit(url)
    if parts.scheme == "file":
        with Path(unquote(parts.path)).open("rb") as file:
            data = file.read(_KEYS_BYTES_MAX + 1)
    else:
        with urllib.request.urlopen(url, timeout=_FETCH_S) as answer:
            data = answer.read(_KEYS_BYTES_MAX + 1)
    if len(data) > _KEYS_BYTES_MAX:
        raise ConfigError(f"more than {_KEYS_BYTES_MAX} bytes of keys")
    return bytes(data)
