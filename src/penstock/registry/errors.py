"""What the registry refuses, each with Confluent's code and sentence.

Clients match on codes and people on sentences, so both are part of the interface. The first three
digits of a code are the HTTP status.

    PenstockError
    └── RegistryError     a code and a sentence; the functions below make them
"""

from collections.abc import Sequence

from penstock.errors import PenstockError


class RegistryError(PenstockError):
    """A request that the registry refuses."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence

    @property
    def status(self) -> int:
        """The HTTP status."""
        return int(str(self.code)[:3])

    def __reduce__(self) -> tuple[type["RegistryError"], tuple[int, str]]:
        return type(self), (self.code, self.sentence)


def subject_not_found(subject: str) -> RegistryError:
    """40401."""
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> RegistryError:
    """40402."""
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(schema_id: int | str | None = None) -> RegistryError:
    """40403."""
    return RegistryError(40403, f"Schema{'' if schema_id is None else f' {schema_id}'} not found")


def subject_soft_deleted(subject: str) -> RegistryError:
    """40404."""
    sentence = f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
    return RegistryError(40404, sentence)


def subject_not_soft_deleted(subject: str) -> RegistryError:
    """40405."""
    sentence = f"Subject '{subject}' was not deleted first before being permanently deleted"
    return RegistryError(40405, sentence)


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    """40406."""
    return RegistryError(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted."
        "Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    """40407."""
    return RegistryError(
        40407,
        f"Subject '{subject}' Version {version} was not deleted first before being permanently "
        "deleted",
    )


def no_subject_compatibility(subject: str | None) -> RegistryError:
    """40408."""
    sentence = f"Subject '{subject}' does not have subject-level compatibility configured"
    return RegistryError(40408, sentence)


def no_subject_mode(subject: str | None) -> RegistryError:
    """40409."""
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, reasons: Sequence[str]) -> RegistryError:
    """409."""
    return RegistryError(
        409,
        "Schema being registered is incompatible with an earlier schema for subject "
        f'"{subject}", details: [{", ".join(reasons)}]',
    )


def invalid_schema(sentence: str) -> RegistryError:
    """42201."""
    return RegistryError(42201, sentence)


def invalid_version(version: str) -> RegistryError:
    """42202."""
    return RegistryError(
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between "
        '[1, 2^31-1] and the string "latest"',
    )


def invalid_level() -> RegistryError:
    """42203."""
    return RegistryError(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive",
    )


def invalid_mode() -> RegistryError:
    """42204."""
    sentence = "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, and IMPORT."
    return RegistryError(42204, sentence)


def not_permitted(sentence: str) -> RegistryError:
    """42205."""
    return RegistryError(42205, sentence)


def reference_exists(subject: str, version: int) -> RegistryError:
    """42206."""
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return RegistryError(42206, f"One or more references exist to the schema {key}.")


def id_does_not_match(sentence: str) -> RegistryError:
    """42207."""
    return RegistryError(42207, sentence)


def invalid_subject(subject: str) -> RegistryError:
    """42208."""
    return RegistryError(42208, f"The specified subject '{subject}' is not a valid subject.")


def too_large(sentence: str) -> RegistryError:
    """42209."""
    return RegistryError(42209, sentence)


def invalid_rule_set(sentence: str) -> RegistryError:
    """42210."""
    return RegistryError(42210, f"Invalid rule set: {sentence}")


def context_not_empty(context: str) -> RegistryError:
    """42211."""
    return RegistryError(42211, f"Context '{context}' is not empty")


def context_not_found(context: str) -> RegistryError:
    """404, without a code of its own."""
    return RegistryError(404, f"Context '{context}' not found.")


def store_failed(reason: str) -> RegistryError:
    """50001."""
    return RegistryError(50001, f"Error in the backend data store - {reason}")


def store_timed_out() -> RegistryError:
    """50002."""
    return RegistryError(50002, "Operation timed out: the change was not read back in time")


def forwarding_failed(why: str) -> RegistryError:
    """50003."""
    return RegistryError(50003, f"Error while forwarding the request to the leader: {why}")


def leader_unknown() -> RegistryError:
    """50004."""
    return RegistryError(50004, "Leader not known.")
