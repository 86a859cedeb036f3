"""Schemas by id from a schema registry that speaks Confluent's HTTP interface.

Asked are `GET /schemas/ids/{id}` and, for what a schema refers to, `GET /subjects/{subject}/
versions/{version}`; `ask` is for whoever administers a registry. Protobuf comes in its compiled
form (`format=serialized`), so no compiler is needed here. A schema never changes under its id, so
each is asked for once per process.
"""

import base64
import binascii
import json
import threading
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from penstock.client.errors import BrokerUnreachableError
from penstock.errors import ConfigError
from penstock.schemas.errors import FormatError, SchemaError, UnknownSchema
from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.protobuf import FileDescriptorProto, ParseError, files_of, joined

_ACCEPTED = "application/vnd.schemaregistry.v1+json, application/json"
_SENT = "application/vnd.schemaregistry.v1+json"
_REFERENCE_DEPTH_MAX = 64


class RegistryUnreachable(BrokerUnreachableError):
    """No registry answered; the records are not to blame, so no policy for them applies."""


class RegistryRefused(FormatError):
    """The registry says no: its code and its sentence."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code

    def __reduce__(self) -> tuple[type["RegistryRefused"], tuple[int, str]]:
        return type(self), (self.code, str(self))


class RegistryClient:
    """Asks one of several registries: `RegistryClient("http://localhost:8081")`.

    `basic_auth` is `user:password`; written as `file:/path` or `env:NAME` it is read where the
    client runs, and does not travel with it.
    """

    def __init__(
        self, urls: str, *, basic_auth: str | None = None, timeout_s: float = 10.0
    ) -> None:
        self.urls = [url.strip().rstrip("/") for url in urls.split(",") if url.strip()]
        self.basic_auth = basic_auth
        self.timeout_s = timeout_s
        if not self.urls:
            raise ConfigError("the schema registry needs a URL such as http://localhost:8081")
        for url in self.urls:
            if urlsplit(url).scheme not in ("http", "https"):
                raise ConfigError(f"the schema registry's URL {url} does not begin with http")
        self._found: dict[int, StoredSchema] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"urls": self.urls, "basic_auth": self.basic_auth, "timeout_s": self.timeout_s}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._found = {}
        self._lock = threading.Lock()

    def by_id(self, schema_id: int) -> StoredSchema:
        """The schema of this id."""
        with self._lock:
            if schema_id not in self._found:
                answer = self._get(f"/schemas/ids/{schema_id}?format=serialized")
                if answer is None:
                    raise UnknownSchema(schema_id, f"the schema registry {self.urls[0]}")
                self._found[schema_id] = self._stored(schema_id, answer, 0)
            return self._found[schema_id]

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The document of an answer, None for an empty one; RegistryRefused if it is an error.

        A registry that cannot be reached is passed over. What one has taken and not answered is not
        sent to the next: it may have been done.
        """
        reasons: list[str] = []
        for url in self.urls:
            request = self._request(url + path)
            request.method = method
            if body is not None:
                request.data = json.dumps(body).encode()
                request.add_header("Content-Type", _SENT)
            try:
                with urlopen(request, timeout=self.timeout_s) as response:
                    content = response.read()
                    return json.loads(content) if content else None
            except HTTPError as error:
                with error:
                    raise _refusal(url, error) from error
            except ValueError as error:
                sentence = f"{url} does not answer like a schema registry"
                raise RegistryUnreachable(sentence) from error
            except (URLError, OSError) as error:
                reasons.append(f"{url}: {getattr(error, 'reason', error)}")
                if not isinstance(getattr(error, "reason", None), ConnectionRefusedError):
                    break
        raise RegistryUnreachable(f"no schema registry answers ({'; '.join(reasons)})")

    def _stored(self, schema_id: int, answer: Mapping[str, Any], depth: int) -> StoredSchema:
        try:
            kind = SchemaKind(answer.get("schemaType") or SchemaKind.AVRO)
            text = str(answer["schema"])
        except (KeyError, ValueError) as error:
            raise SchemaError(f"schema {schema_id} came in a form not known: {error}") from error
        if depth > _REFERENCE_DEPTH_MAX:
            raise SchemaError(f"schema {schema_id} refers to others without end")
        references = tuple(
            self._reference(schema_id, one, depth + 1) for one in answer.get("references") or ()
        )
        if kind is SchemaKind.PROTOBUF:
            compiled = _compile(schema_id, text, answer.get("references") or (), references)
            return StoredSchema(schema_id=schema_id, kind=kind, descriptor_set=compiled)
        flat = tuple(dict.fromkeys(r for one in references for r in (*one.references, one)))
        return StoredSchema(schema_id=schema_id, kind=kind, text=text, references=flat)

    def _reference(self, schema_id: int, one: Mapping[str, Any], depth: int) -> StoredSchema:
        subject = quote(str(one["subject"]), safe="")
        path = f"/subjects/{subject}/versions/{one['version']}?format=serialized&deleted=true"
        answer = self._get(path)
        if answer is None:
            raise SchemaError(
                f"schema {schema_id} refers to version {one['version']} of {one['subject']}, "
                "which the registry does not have"
            )
        return self._stored(int(answer["id"]), answer, depth)

    def _get(self, path: str) -> Mapping[str, Any] | None:
        """The answer of the first registry that gives one; None if it has no such thing."""
        reasons: list[str] = []
        for url in self.urls:
            try:
                with urlopen(self._request(url + path), timeout=self.timeout_s) as response:
                    return _object(response.read(), url)
            except HTTPError as error:
                with error:
                    if error.code == 404:
                        return None
                    if error.code < 500:
                        raise RegistryUnreachable(_refused(url, error)) from error
                    reasons.append(_refused(url, error))
            except (URLError, OSError) as error:
                reasons.append(f"{url}: {getattr(error, 'reason', error)}")
        raise RegistryUnreachable(f"no schema registry answers ({'; '.join(reasons)})")

    def _request(self, url: str) -> Request:
        request = Request(url, headers={"Accept": _ACCEPTED})
        if self.basic_auth is not None:
            from penstock.client.wire.secrets import resolve_secrets

            secret = resolve_secrets({"basic.auth.user.info": self.basic_auth})
            word = base64.b64encode(secret["basic.auth.user.info"].encode()).decode()
            request.add_header("Authorization", f"Basic {word}")
        return request


def _compile(
    schema_id: int,
    text: str,
    named: Any,
    references: tuple[StoredSchema, ...],
) -> bytes:
    """A descriptor set of the schema's own file and of those that it imports."""
    own = FileDescriptorProto()
    try:
        own.ParseFromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ParseError) as error:
        raise SchemaError(
            f"schema {schema_id} came as Protobuf text; this needs a registry that knows "
            "format=serialized, or a SchemaDirectory with what protoc compiled"
        ) from error
    own.name = own.name or f"schema-{schema_id}.proto"
    files: dict[str, FileDescriptorProto] = {}
    for name, reference in zip((str(one["name"]) for one in named), references, strict=True):
        inner = files_of(reference.descriptor_set)
        inner[-1].name = name  # It is imported under the name that the reference gives it.
        files.update({file.name: file for file in inner})
    return joined([*files.values(), own])


def _object(body: bytes, url: str) -> Mapping[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise RegistryUnreachable(f"{url} does not answer like a schema registry") from error
    if not isinstance(answer, dict):
        raise RegistryUnreachable(f"{url} does not answer like a schema registry")
    return answer


def _refusal(url: str, error: HTTPError) -> Exception:
    """The error that a registry tells; another server's is told as it is."""
    try:
        told = json.loads(error.read())
        return RegistryRefused(int(told["error_code"]), str(told["message"]))
    except (ValueError, KeyError, TypeError, OSError):
        return RegistryUnreachable(_refused(url, error))


def _refused(url: str, error: HTTPError) -> str:
    return f"{url} answered {error.code} {error.reason}"
