"""kafka-acls: show, add and remove access rules."""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from penstock.cli.bootstrap import add_bootstrap, add_command_config, admin_of
from penstock.cli.parser import ToolParser
from penstock.cli.sentences import told_after
from penstock.client.admin import Admin
from penstock.errors import CommandError
from penstock.security.acls.decision import SUPPORTED
from penstock.security.acls.rules import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    EntryFilter,
    PatternType,
    ResourceFilter,
    ResourcePattern,
    word_of,
)
from penstock.security.principals import PrincipalUnreadable

_OPENING: Final = "Error while executing ACL command: "
_ONE_SERVER: Final = "one of --bootstrap-server or --bootstrap-controller must be specified"
# By option: what cannot stand beside it.
_OF_RULES: Final = ("allow-host", "allow-principal", "deny-host", "deny-principal")
_FOREIGN: Final[Mapping[str, Sequence[str]]] = {
    "list": ("producer", "consumer", *_OF_RULES),
    "producer": ("operation", "deny-principal", "deny-host"),
    "consumer": ("operation", "deny-principal", "deny-host"),
}
_OF_CONTROLLER: Final = "As --bootstrap-server: each broker passes on what is the controller's."
Rules = dict[ResourceFilter, list[AccessControlEntry]]
T, G, C, X = (
    AclResourceType.TOPIC,
    AclResourceType.GROUP,
    AclResourceType.CLUSTER,
    AclResourceType.TRANSACTIONAL_ID,
)


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    with told_after(_OPENING):
        _check(parser, options)
    # A broker does here what Kafka's controllers are asked for.
    options.bootstrap_server = options.bootstrap_server or options.bootstrap_controller
    with admin_of(parser, options) as admin, told_after(_OPENING):
        if options.add:
            _add(admin, options)
        elif options.remove:
            _remove(admin, options)
        else:
            _list(admin, options)
    return 0


def _add(admin: Admin, options: argparse.Namespace) -> None:
    for resource, entries in _wanted(options).items():
        pattern = ResourcePattern(resource.type, resource.name or "", resource.pattern)
        new = _without_known(admin, resource, pattern, entries)
        if new:
            print(f"Adding ACLs for resource `{pattern_text(pattern)}`: \n {_lines(new)}\n")
            admin.create_acls([AclBinding(pattern, entry) for entry in new])


def _without_known(
    admin: Admin,
    resource: ResourceFilter,
    pattern: ResourcePattern,
    entries: Iterable[AccessControlEntry],
) -> list[AccessControlEntry]:
    """The rules that are not there yet; the others are told of."""
    known = {rule.entry for rule in admin.describe_acls(AclBindingFilter(resource=resource))}
    new: list[AccessControlEntry] = []
    for entry in entries:
        if entry in known:
            rule = f"(pattern={pattern_text(pattern)}, entry={entry_text(entry)})"
            print(f"Acl {rule} already exists.")
        else:
            new.append(entry)
    return new


def _remove(admin: Admin, options: argparse.Namespace) -> None:
    for resource, entries in _wanted(options).items():
        shown = filter_text(resource)
        if not entries:
            question = f"Are you sure you want to delete all ACLs for resource filter `{shown}`?"
            filters = [AclBindingFilter(resource=resource)]
        else:
            question = (
                f"Are you sure you want to remove ACLs: \n {_lines(entries)}\n"
                f" from resource filter `{shown}`?"
            )
            filters = [
                AclBindingFilter(resource=resource, entry=_entry_filter(entry)) for entry in entries
            ]
        if options.force or _confirmed(f"{question} (y/n)"):
            admin.delete_acls(filters)


def _confirmed(question: str) -> bool:
    print(question)
    return sys.stdin.readline().strip().lower() == "y"


def _list(admin: Admin, options: argparse.Namespace) -> None:
    resources = _resources(options) or [ResourceFilter()]
    found: dict[ResourcePattern, list[AccessControlEntry]] = {}
    for resource in resources:
        for rule in admin.describe_acls(AclBindingFilter(resource=resource)):
            entries = found.setdefault(rule.resource, [])
            if rule.entry not in entries:
                entries.append(rule.entry)
    if not options.principal:
        _print_all(found.items())
        return
    for principal in options.principal:
        print(f"ACLs for principal `{principal}`")
        own = {
            resource: [entry for entry in entries if entry.principal == principal]
            for resource, entries in found.items()
        }
        _print_all((resource, entries) for resource, entries in own.items() if entries)


def _print_all(found: Iterable[tuple[ResourcePattern, list[AccessControlEntry]]]) -> None:
    for resource, entries in found:
        print(f"Current ACLs for resource `{pattern_text(resource)}`:\n{_lines(entries)}\n")


def pattern_text(resource: ResourcePattern) -> str:
    """As Java prints it."""
    return (
        f"ResourcePattern(resourceType={resource.type.name}, name={resource.name}, "
        f"patternType={resource.pattern.name})"
    )


def filter_text(resource: ResourceFilter) -> str:
    name = "<any>" if resource.name is None else resource.name
    return (
        f"ResourcePattern(resourceType={resource.type.name}, name={name}, "
        f"patternType={resource.pattern.name})"
    )


def entry_text(entry: AccessControlEntry) -> str:
    return (
        f"(principal={entry.principal}, host={entry.host}, operation={entry.operation.name}, "
        f"permissionType={entry.permission.name})"
    )


def _lines(entries: Iterable[AccessControlEntry]) -> str:
    return "\n".join(f"\t{entry_text(entry)}" for entry in entries)


# What is meant


def _wanted(options: argparse.Namespace) -> Rules:
    if options.producer or options.consumer:
        return _of_roles(options)
    return dict.fromkeys(_resources(options), _entries(options, _operations(options)))


def _of_roles(options: argparse.Namespace) -> Rules:
    """What --producer and --consumer stand for; both together get the rights of both."""
    wanted: Rules = {}
    for resource in _resources(options):
        operations: list[AclOperation] = []
        if options.producer and resource.type in (T, X):
            operations += [AclOperation.WRITE, AclOperation.DESCRIBE]
            if resource.type is T:
                operations.append(AclOperation.CREATE)
        if options.consumer and resource.type in (T, G):
            operations.append(AclOperation.READ)
            if resource.type is T and AclOperation.DESCRIBE not in operations:
                operations.append(AclOperation.DESCRIBE)
        if operations:
            wanted[resource] = _entries(options, operations)
    if options.producer and options.idempotent:
        cluster = ResourceFilter(type=C, name=CLUSTER_NAME, pattern=PatternType.LITERAL)
        wanted[cluster] = _entries(options, [AclOperation.IDEMPOTENT_WRITE])
    return wanted


def _entries(
    options: argparse.Namespace, operations: Iterable[AclOperation]
) -> list[AccessControlEntry]:
    sides = (
        (AclPermission.ALLOW, options.allow_principal, options.allow_host),
        (AclPermission.DENY, options.deny_principal, options.deny_host),
    )
    chosen = list(operations)
    return [
        AccessControlEntry(principal, host, operation, permission)
        for permission, principals, hosts in sides
        for principal in principals
        for host in hosts or ["*"]
        for operation in chosen
    ]


def _resources(options: argparse.Namespace) -> list[ResourceFilter]:
    pattern = _pattern_type(options)
    named = (
        (T, options.topic),
        (G, options.group),
        (X, options.transactional_id),
        (AclResourceType.DELEGATION_TOKEN, options.delegation_token),
        (AclResourceType.USER, options.user_principal),
    )
    found = [
        ResourceFilter(type=kind, name=name, pattern=pattern)
        for kind, names in named
        for name in names
    ]
    if options.cluster and pattern is PatternType.LITERAL:
        found.append(ResourceFilter(type=C, name=CLUSTER_NAME, pattern=pattern))
    return found


def _entry_filter(entry: AccessControlEntry) -> EntryFilter:
    return EntryFilter(
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission=entry.permission,
    )


def _pattern_type(options: argparse.Namespace) -> PatternType:
    words = {"any": 1, "match": 2, "literal": 3, "prefixed": 4}
    number = words.get(str(options.resource_pattern_type).lower())
    if number is None:
        raise CommandError(
            f"Cannot parse argument '{options.resource_pattern_type}' of option "
            f"resource-pattern-type: write {', '.join(words)}"
        )
    return PatternType(number)


def _operations(options: argparse.Namespace) -> list[AclOperation]:
    return [_operation(word) for word in options.operation or ["All"]]


def _operation(word: str) -> AclOperation:
    """UNKNOWN for what is none; no resource has that one."""
    wanted = word.replace("_", "").lower()
    words = {word_of(operation).lower(): operation for operation in AclOperation}
    return words.get(wanted, AclOperation.UNKNOWN)


# The command line


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    """Refuse what Kafka's tool refuses, in its order and its words."""
    if options.bootstrap_server and options.bootstrap_controller:
        parser.error(f"Only {_ONE_SERVER}")
    if [options.add, options.remove, options.list].count(True) != 1:
        parser.error("Command must include exactly one action: --list, --add, --remove. ")
    for option, foreign in _FOREIGN.items():
        _refuse_together(parser, options, option, foreign)
    _check_roles(parser, options)
    for principal in (*options.allow_principal, *options.deny_principal, *options.principal):
        if ":" not in principal:
            raise PrincipalUnreadable(principal)
    if not options.list:
        _check_change(parser, options)


def _refuse_together(
    parser: ToolParser, options: argparse.Namespace, option: str, foreign: Iterable[str]
) -> None:
    for other in foreign if getattr(options, option) else ():
        if getattr(options, other.replace("-", "_")):
            parser.error(f'Option "[{option}]" can\'t be used with option "[{other}]"')


def _check_roles(parser: ToolParser, options: argparse.Namespace) -> None:
    if options.principal and not options.list:
        parser.error("The --principal option is only available if --list is set")
    if options.producer and not options.topic:
        parser.error("With --producer you must specify a --topic")
    if options.idempotent and not options.producer:
        parser.error("The --idempotent option is only available if --producer is set")
    is_of_others = bool(options.cluster or options.transactional_id) and not options.producer
    if options.consumer and (not options.topic or not options.group or is_of_others):
        parser.error(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )


def _check_change(parser: ToolParser, options: argparse.Namespace) -> None:
    resources, pattern = _resources(options), _pattern_type(options)
    if not resources:
        parser.error(
            "You must provide at least one resource: --topic <topic> or --cluster or --group "
            "<group> or --delegation-token <Delegation Token ID>"
        )
    if options.add and pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        parser.error(
            f"A '--resource-pattern-type' value of '{pattern.name}' is not valid when adding acls."
        )
    if options.add and not (options.allow_principal or options.deny_principal):
        parser.error(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    operations = _operations(options)
    if AclOperation.ANY in operations:
        raise CommandError("operation must not be ANY")
    for kind in dict.fromkeys(resource.type for resource in resources):
        allowed = sorted({*SUPPORTED[kind], AclOperation.ALL})
        if not set(operations) <= set(allowed):
            names = ", ".join(one.name for one in allowed)
            parser.error(f"ResourceType {kind.name} only supports operations [{names}]")


def _parser() -> ToolParser:
    parser = ToolParser("kafka-acls", "This tool helps to manage acls on kafka.")
    parser.missing = _ONE_SERVER.capitalize()
    add_bootstrap(parser)
    add_command_config(parser)
    flag, option = parser.flag, parser.add_argument
    option("--bootstrap-controller", metavar="controller to connect to", help=_OF_CONTROLLER)
    flag("add", "Indicates you are trying to add ACLs.")
    flag("remove", "Indicates you are trying to remove ACLs.")
    flag("list", "List ACLs for the specified resource, use --topic <topic> or --group <group>.")
    flag("cluster", "Add/Remove cluster ACLs.")
    flag("force", "Assume Yes to all queries and do not prompt.")
    flag("producer", "Convenience option to add/remove ACLs for producer role.")
    flag("consumer", "Convenience option to add/remove ACLs for consumer role.")
    flag("idempotent", "Enable idempotence for the producer, together with --producer.")
    option("--resource-pattern-type", default="literal", help="literal, prefixed, match or any.")
    for name, text in (
        ("topic", "topic to which ACLs should be added or removed; * for all topics."),
        ("group", "Consumer Group to which the ACLs should be added or removed."),
        ("transactional-id", "The transactionalId to which ACLs should be added or removed."),
        ("delegation-token", "Delegation token to which ACLs should be added or removed."),
        ("user-principal", "Specifies a user principal as a resource."),
        ("allow-principal", "principal is in principalType:name format."),
        ("deny-principal", "principal is in principalType:name format."),
        ("allow-host", "Host from which principals of --allow-principal will have access."),
        ("deny-host", "Host from which principals of --deny-principal will be denied access."),
        ("operation", "Operation that is being allowed or denied."),
        ("principal", "List ACLs for the specified principal."),
    ):
        option(f"--{name}", action="append", default=[], metavar="text", help=text)
    return parser
