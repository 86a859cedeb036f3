"""HDFS as an `ObjectStore`, by WebHDFS: HTTP to the NameNode, and to the DataNode it names.

A file is written aside and then renamed over the one that may be there. WebHDFS has no rename that
takes the place of a file, so a replay deletes the old one first: for a moment there is none, and a
task that dies then writes it again, since its offset is not committed.
"""

import http.client
import json
import uuid
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from urllib.parse import quote, urlencode, urlsplit

from penstock.connect.errors.kinds import ConnectError, RetriableConnectError
from penstock.http.whole_answers import refuse_cut

_TIMEOUT_S = 60
_CHUNK_BYTES = 1 << 20
_PASSING = ("StandbyException", "SafeModeException", "RetriableException")


class WebHdfsStore:
    """Everything below one folder of a file system; simple authentication by a user's name."""

    def __init__(self, url: str, user: str = "") -> None:
        parts = urlsplit(url)
        self._is_tls = parts.scheme in ("swebhdfs", "https")
        self._address = parts.netloc
        self._root = parts.path.rstrip("/")
        self._user = user

    def check(self) -> None:
        self._call("PUT", "", op="MKDIRS")

    def put(self, name: str, content: IO[bytes]) -> None:
        folder, _, last = name.rpartition("/")
        aside = f"{folder}/.{last}.{uuid.uuid4().hex[:8]}"
        content.seek(0)
        self._write(aside, content)
        if not self._rename(aside, name):
            self._call("DELETE", name, op="DELETE")
            if not self._rename(aside, name):
                raise RetriableConnectError(f"{name} could not be given its name")

    def get(self, name: str) -> IO[bytes]:
        made = SpooledTemporaryFile(_CHUNK_BYTES)  # noqa: SIM115 (the caller closes it)
        answer, connection = self._followed("GET", name, None, {"op": "OPEN"})
        try:
            while chunk := answer.read(_CHUNK_BYTES):
                made.write(chunk)
            refuse_cut(answer, b"")
        except (OSError, http.client.HTTPException) as error:
            raise RetriableConnectError(f"reading {name} failed: {error!r}") from error
        finally:
            connection.close()
        made.seek(0)
        return made

    def folders(self, folder: str) -> Iterator[str]:
        yield folder
        for name, is_folder in self._inside(folder):
            if is_folder:
                yield from self.folders(f"{folder}/{name}" if folder else name)

    def names(self, folder: str, after: str = "") -> Iterator[str]:
        for name, is_folder in self._inside(folder):
            whole = f"{folder}/{name}" if folder else name
            if not is_folder and whole > after:
                yield whole

    def close(self) -> None:
        return

    def _inside(self, folder: str) -> list[tuple[str, bool]]:
        found = self._call("GET", folder, op="LISTSTATUS")
        listed = [] if found is None else found["FileStatuses"]["FileStatus"]
        kept = (one for one in listed if not one["pathSuffix"].startswith((".", "_")))
        return sorted((one["pathSuffix"], one["type"] == "DIRECTORY") for one in kept)

    def _rename(self, old: str, new: str) -> bool:
        whole = f"{self._root}/{new}"
        done = self._call("PUT", old, op="RENAME", destination=whole)
        return bool(done and done.get("boolean"))

    def _write(self, name: str, content: IO[bytes]) -> None:
        """The NameNode says where to, then the bytes go there."""
        query = {"op": "CREATE", "overwrite": "true", "noredirect": "true"}
        found = self._call("PUT", name, **query)
        if not isinstance(found, dict) or "Location" not in found:
            raise RetriableConnectError(f"the NameNode named no place for {name}: {found}")
        parts = urlsplit(found["Location"])
        connection = self._connection(parts.netloc)
        try:
            headers = {"Content-Type": "application/octet-stream"}
            connection.request("PUT", f"{parts.path}?{parts.query}", content.read(), headers)
            _checked(connection.getresponse(), f"storing {name}")
        except (OSError, http.client.HTTPException) as error:
            raise RetriableConnectError(f"storing {name} failed: {error!r}") from error
        finally:
            connection.close()

    def _call(self, method: str, name: str, **query: str) -> Any:
        """The NameNode's answer; None: there is no such file."""
        answer, connection = self._followed(method, name, None, query)
        try:
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise RetriableConnectError(f"{query['op']} of {name} failed: {error!r}") from error
        finally:
            connection.close()
        return None if answer.status == 404 else json.loads(text or b"{}")

    def _followed(
        self, method: str, name: str, body: bytes | None, query: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, http.client.HTTPConnection]:
        """An answer, of the DataNode where the NameNode sends there."""
        more = {**query, "user.name": self._user} if self._user else query
        place = f"/webhdfs/v1{quote(f'{self._root}/{name}'.rstrip('/'))}?{urlencode(more)}"
        connection = self._connection(self._address)
        try:
            connection.request(method, place, body)
            answer = connection.getresponse()
            if answer.status in (302, 307):
                parts = urlsplit(answer.headers["Location"])
                connection.close()
                connection = self._connection(parts.netloc)
                connection.request(method, f"{parts.path}?{parts.query}", body)
                answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise RetriableConnectError(f"{query['op']} of {name} failed: {error!r}") from error
        if answer.status != 404:
            _checked(answer, f"{query['op']} of {name}")
        return answer, connection

    def _connection(self, address: str) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._is_tls else http.client.HTTPConnection
        return kind(address, timeout=_TIMEOUT_S)


def _checked(answer: http.client.HTTPResponse, what: str) -> None:
    if answer.status < 300:
        return
    text = answer.read().decode(errors="replace")
    sentence = f"{what} was answered with {answer.status}: {text[:500]}"
    if answer.status >= 500 or any(word in text for word in _PASSING):
        raise RetriableConnectError(sentence)
    raise ConnectError(sentence)
