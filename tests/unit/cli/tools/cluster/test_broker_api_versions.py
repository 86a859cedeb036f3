"""kafka-broker-api-versions: what both sides can use."""

from penstock.cli.tools.cluster.broker_api_versions import api_lines
from penstock.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse


def test_every_api_of_either_side_has_a_line() -> None:
    answer = ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=0, min_version=0, max_version=20),
            ApiVersion(api_key=46, min_version=0, max_version=0),
            ApiVersion(api_key=3, min_version=90, max_version=91),
            ApiVersion(api_key=9999, min_version=0, max_version=1),
        ]
    )
    lines = api_lines(answer).split(",\n")
    assert lines[0] == "\tProduce(0): 0 to 20 [usable: 13]"
    assert "\tListPartitionReassignments(46): 0 [usable: 0]" in lines
    assert "\tMetadata(3): 90 to 91 [unusable: node too new]" in lines
    assert "\tFetch(1): UNSUPPORTED" in lines
    assert lines[-1] == "\tUNKNOWN(9999): 0 to 1 [unusable: not known to this tool]"
