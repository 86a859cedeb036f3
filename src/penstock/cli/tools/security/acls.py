"""kafka-acls: show, add and remove access rules."""

import argparse
import sys
from collections.abc import Iterable, Sequence

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
    _check(parser, options)
    with admin_of(parser, options) as admin, told_after("Error while executing ACL command: "):
        if options.add:
            _add(admin, options)
        elif options.remove:
            _remove(admin, options)
        else:
            _list(admin, options)
    return 0


def _add(admin: Admin, options: argparse.Namespace) -> None:
    for resource, entries in _wanted(options).items():
        if resource.pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
            raise CommandError("A '--resource-pattern-type' value of 'any' or 'match' cannot add.")
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
    operations = [_operation(word) for word in options.operation or ["All"]]
    resources = _resources(options)
    for resource in resources:
        _check_operations(resource.type, operations)
    entries = _entries(options, operations)
    if options.add and not entries:
        raise CommandError(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    return dict.fromkeys(resources, entries)


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
    if options.cluster:
        found.append(ResourceFilter(type=C, name=CLUSTER_NAME, pattern=PatternType.LITERAL))
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
            f"Invalid resource-pattern-type {options.resource_pattern_type}: write "
            f"{', '.join(words)}."
        )
    return PatternType(number)


def _operation(word: str) -> AclOperation:
    wanted = word.replace("_", "").lower()
    for operation in AclOperation:
        is_word = word_of(operation).lower() == wanted
        if is_word and operation not in (AclOperation.UNKNOWN, AclOperation.ANY):
            return operation
    raise CommandError(f"{word} is not an operation.")


def _check_operations(kind: AclResourceType, operations: Iterable[AclOperation]) -> None:
    allowed = {*SUPPORTED[kind], AclOperation.ALL}
    wrong = [operation for operation in operations if operation not in allowed]
    if wrong:
        raise CommandError(
            f"ResourceType {kind.name} only supports operations "
            f"[{', '.join(one.name for one in sorted(allowed))}]"
        )


# The command line


def _check(parser: ToolParser, options: argparse.Namespace) -> None:
    if [options.add, options.remove, options.list].count(True) != 1:
        parser.error("Command must include exactly one action: --list, --add, --remove. ")
    if options.list:
        return
    if not _resources(options):
        parser.error(
            "You must provide at least one resource: --topic <topic> or --cluster or --group "
            "<group> or --delegation-token <Delegation Token ID>"
        )
    if options.producer and not options.topic:
        parser.error("With --producer you must specify a --topic")
    if options.consumer and not (options.topic and options.group):
        parser.error("With --consumer you must specify a --topic and a --group")
    if options.idempotent and not options.producer:
        parser.error("The --idempotent option is only available if --producer is set")


def _parser() -> ToolParser:
    parser = ToolParser("kafka-acls", "This tool helps to manage acls on kafka.")
    add_bootstrap(parser)
    add_command_config(parser)
    flag, option = parser.flag, parser.add_argument
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
