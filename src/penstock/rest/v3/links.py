"""Where things are: the addresses and names that every resource carries.

metadata.self            the address of the resource itself
metadata.resource_name   the same as a name, `crn:///kafka=C/topic=T`
related                  the address of resources that belong to it
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Addresses below one cluster, as one client reaches them."""

    base: str  # Scheme and host, without a slash at the end.
    cluster_id: str

    def to(self, *segments: str | int) -> str:
        """The address of something in the cluster."""
        path = "".join(f"/{quote(str(one), safe='-:')}" for one in segments)
        return f"{self.base}/v3/clusters/{quote(self.cluster_id, safe='')}{path}"

    def related(self, *segments: str | int) -> Document:
        """A reference to something in the cluster."""
        return {"related": self.to(*segments)}

    def name(self, **parts: str | int) -> str:
        """The name of something in the cluster; `_` in a key stands for `-`."""
        rest = "".join(f"/{key.replace('_', '-')}={value}" for key, value in parts.items())
        return f"crn:///kafka={self.cluster_id}{rest}"


def resource(kind: str, self_link: str, name: str | None, fields: Mapping[str, object]) -> Document:
    """A document of one resource."""
    metadata: Document = {"self": self_link}
    if name is not None:
        metadata["resource_name"] = name
    return {"kind": kind, "metadata": metadata, **fields}


def collection(kind: str, self_link: str, data: Iterable[Document]) -> Document:
    """A document of many resources; there is never a next page."""
    metadata = {"self": self_link, "next": None}
    return {"kind": kind, "metadata": metadata, "data": list(data)}


def with_query(link: str, parameters: Mapping[str, str]) -> str:
    """An address with parameters."""
    return f"{link}?{urlencode(parameters)}" if parameters else link
