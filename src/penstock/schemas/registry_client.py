"""Schemas by id from a schema registry that speaks Confluent's HTTP interface.

Asked are `GET /schemas/ids/{id}` and, for what a schema refers to, `GET /subjects/{subject}/
versions/{version}`. Protobuf comes in its compiled form (`format=serialized`), so no compiler is
needed here. A schema never changes under its id, so each is asked for once per process.
"""

import base64
import binascii
import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from penstock.client.errors import BrokerUnreachableError
from penstock.errors import ConfigError
from penstock.schemas.errors import SchemaError, UnknownSchema
from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.protobuf import FileDescriptorProto, ParseError, files_of, joined

_ACCEPTED = "application/vnd.schemaregistry.v1+json, application/json"
_REFERENCE_DEPTH_MAX = 64


class RegistryUnreachable(BrokerUnreachableError):
    """No registry answered; the records are not to blame, so no policy for them applies."""


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

    def subjects_of(self, schema_id: int) -> list[str] | None:
        """The subjects that have the schema of this id; None: the registry does not know it."""
        subjects = self._ask(f"/schemas/ids/{schema_id}/subjects")
        if subjects is not None and not isinstance(subjects, list):
            raise RegistryUnreachable(f"{self.urls[0]} does not answer like a schema registry")
        return subjects

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
        stored = self._stored(int(answer["id"]), answer, depth)
        return replace(stored, name=str(one["name"]))

    def _get(self, path: str) -> Mapping[str, Any] | None:
        """The object that the registry answers with; None if it has no such thing."""
        answer = self._ask(path)
        if answer is not None and not isinstance(answer, dict):
            raise RegistryUnreachable(f"{self.urls[0]} does not answer like a schema registry")
        return answer

    def _ask(self, path: str) -> Any:
        """The answer of the first registry that gives one; None if it has no such thing."""
        reasons: list[str] = []
        for url in self.urls:
            try:
                with urlopen(self._request(url + path), timeout=self.timeout_s) as response:
                    return _parsed(response.read(), url)
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


def _parsed(body: bytes, url: str) -> Any:
    try:
        return json.loads(body)
    except ValueError as error:
        raise RegistryUnreachable(f"{url} does not answer like a schema registry") from error


def _refused(url: str, error: HTTPError) -> str:
    return f"{url} answered {error.code} {error.reason}"
