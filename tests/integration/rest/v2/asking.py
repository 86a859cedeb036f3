"""Requests of version 2 as its clients make them."""

from typing import Any

import httpx
from tests.support.waiting import eventually

V2 = "application/vnd.kafka.v2+json"


def media(format_: str) -> str:
    return f"application/vnd.kafka.{format_}.v2+json"


def produce(
    client: httpx.Client, topic: str, records: list[dict[str, Any]], format_: str, **more: Any
) -> httpx.Response:
    """Records to a topic."""
    headers = {"content-type": media(format_), "accept": V2}
    return client.post(f"/topics/{topic}", json={"records": records, **more}, headers=headers)


def stored(got: httpx.Response) -> list[tuple[int, int]]:
    """Where each record is; all must be stored."""
    assert got.status_code == 200, got.text
    offsets = got.json()["offsets"]
    assert all(one["error_code"] is None for one in offsets), offsets
    return [(one["partition"], one["offset"]) for one in offsets]


def post(client: httpx.Client, address: str, document: Any = None) -> httpx.Response:
    return client.post(address, json=document, headers={"content-type": V2})


def get_with_body(client: httpx.Client, address: str, document: Any) -> httpx.Response:
    return client.request("GET", address, json=document, headers={"content-type": V2})


def subscribe(client: httpx.Client, consumer: str, *topics: str) -> None:
    got = post(client, f"{consumer}/subscription", {"topics": list(topics)})
    assert (got.status_code, got.text) == (204, "")


def assign(client: httpx.Client, consumer: str, topic: str, *partitions: int) -> None:
    wanted = [{"topic": topic, "partition": number} for number in partitions or (0,)]
    got = post(client, f"{consumer}/assignments", {"partitions": wanted})
    assert got.status_code == 204, got.text


def read(
    client: httpx.Client, consumer: str, count: int, format_: str = "binary"
) -> list[dict[str, Any]]:
    """Records until there are as many; a group needs some requests to come together."""
    found: list[dict[str, Any]] = []

    def have_enough() -> bool:
        headers = {"accept": media(format_)}
        got = client.get(f"{consumer}/records", params={"timeout": 2000}, headers=headers)
        assert got.status_code == 200, got.text
        assert got.headers["content-type"] == media(format_)
        found.extend(got.json())
        return len(found) >= count

    eventually(have_enough, what=f"{count} records")
    assert len(found) == count, found
    return found


def error_of(got: httpx.Response) -> tuple[int, int]:
    """Status and code of a refusal."""
    document = got.json()
    assert document["message"]
    return got.status_code, document["error_code"]
