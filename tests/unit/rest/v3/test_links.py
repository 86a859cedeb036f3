"""Addresses and names of resources."""

from penstock.rest.v3.links import Links, collection, resource, with_query

LINKS = Links(base="http://here:8082", cluster_id="c 1")


def test_names_in_addresses_are_encoded_each_by_itself() -> None:
    at = LINKS.to("topics", "a/b%c", "partitions", 3)
    assert at == "http://here:8082/v3/clusters/c%201/topics/a%2Fb%25c/partitions/3"


def test_names_tell_the_way_down() -> None:
    assert LINKS.name() == "crn:///kafka=c 1"
    assert LINKS.name(consumer_group="g", lag="t") == "crn:///kafka=c 1/consumer-group=g/lag=t"


def test_a_resource_says_what_and_where_it_is() -> None:
    assert resource("KafkaTopic", "http://x", "crn", {"a": 1}) == {
        "kind": "KafkaTopic",
        "metadata": {"self": "http://x", "resource_name": "crn"},
        "a": 1,
    }
    assert "resource_name" not in resource("KafkaAcl", "http://x", None, {})["metadata"]


def test_a_collection_has_no_next_page() -> None:
    assert collection("List", "http://x", iter([{"a": 1}])) == {
        "kind": "List",
        "metadata": {"self": "http://x", "next": None},
        "data": [{"a": 1}],
    }


def test_parameters_are_encoded() -> None:
    assert with_query("http://x", {}) == "http://x"
    assert with_query("http://x", {"a": "b&c"}) == "http://x?a=b%26c"
