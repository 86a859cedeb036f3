"""kafka-broker-api-versions: what every broker of a cluster speaks."""

from collections.abc import Sequence

from penstock.cli.bootstrap import add_bootstrap, add_command_config, admin_of
from penstock.cli.parser import ToolParser
from penstock.client.errors import ClientError
from penstock.protocol.apis import PUBLIC_KEYS, ApiKey, supported_versions
from penstock.protocol.messages.api_versions import ApiVersionsResponse


def main(argv: Sequence[str]) -> int:
    parser = ToolParser(
        "kafka-broker-api-versions", "This tool helps to retrieve broker version information."
    )
    add_bootstrap(parser)
    add_command_config(parser)
    options = parser.parse(argv)
    with admin_of(parser, options) as admin:
        fenced = {b.node.id: b.is_fenced for b in admin.describe_cluster().brokers}
        for node, answer in admin.api_versions().items():
            rack = node.rack or "null"
            is_fenced = str(fenced[node.id]).lower()
            name = f"{node.host}:{node.port} (id: {node.id} rack: {rack} isFenced: {is_fenced})"
            if isinstance(answer, ClientError):
                print(f"{name} -> ERROR: {answer}")
            else:
                print(f"{name} -> (\n{api_lines(answer)}\n)")
    return 0


def api_lines(answer: ApiVersionsResponse) -> str:
    """A line per API, by number: those the broker has and those only we know."""
    spoken = {key.api_key: range(key.min_version, key.max_version + 1) for key in answer.api_keys}
    keys = sorted({*spoken, *(int(key) for key in PUBLIC_KEYS)})
    return ",\n".join(f"\t{_api_line(key, spoken.get(key))}" for key in keys)


def _api_line(key: int, versions: range | None) -> str:
    name = f"{_name(key)}({key})"
    if not versions:
        return f"{name}: UNSUPPORTED"
    low, high = versions[0], versions[-1]
    listed = str(low) if low == high else f"{low} to {high}"
    return f"{name}: {listed} [{_use(key, versions)}]"


def _use(key: int, versions: range) -> str:
    ours = supported_versions(key)
    if not ours:
        return "unusable: not known to this tool"
    both = range(max(versions[0], ours[0]), min(versions[-1], ours[-1]) + 1)
    if both:
        return f"usable: {both[-1]}"
    return "unusable: node too new" if versions[0] > ours[-1] else "unusable: node too old"


def _name(key: int) -> str:
    try:
        return ApiKey(key).name.title().replace("_", "")
    except ValueError:
        return "UNKNOWN"
