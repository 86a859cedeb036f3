"""Subjects and the contexts they live in: `orders-value`, or `:.staging:orders-value`.

A context is a registry of its own inside the registry: ids and settings are per context. The
default one is `.` and is left out of names. `:.staging:` without a subject means the context
itself, where settings are concerned.
"""

from dataclasses import dataclass

from penstock.registry.errors import invalid_subject

DEFAULT_CONTEXT = "."
SUBJECT_CHARS_MAX = 10_000
_RESERVED = {"__GLOBAL", "__EMPTY"}


@dataclass(frozen=True, slots=True, kw_only=True)
class QualifiedSubject:
    """A subject and its context."""

    context: str
    subject: str  # Empty: the context itself.

    @property
    def name(self) -> str:
        """As it stands in records: the default context is left out."""
        if self.context == DEFAULT_CONTEXT and self.subject:
            return self.subject
        return f":{self.context}:{self.subject}"

    @property
    def context_name(self) -> str | None:
        """What the context's settings are kept under; None: they are the registry's."""
        return None if self.context == DEFAULT_CONTEXT else f":{self.context}:"


def qualify(name: str) -> QualifiedSubject:
    """The parts of a name."""
    if name.startswith(":."):
        context, colon, subject = name[1:].partition(":")
        if colon:
            return QualifiedSubject(context=context, subject=subject)
    return QualifiedSubject(context=DEFAULT_CONTEXT, subject=name)


def context_of(name: str) -> str:
    """The context of a name; most are in the default one."""
    return qualify(name).context if name.startswith(":.") else DEFAULT_CONTEXT


def stored_name(name: str) -> str:
    """A name as it stands in records."""
    return qualify(name).name if name.startswith(":.") or not name else name


def checked_subject(name: str) -> QualifiedSubject:
    """The parts of a name that a schema may be registered under."""
    qualified = qualify(name)
    if (
        not qualified.subject
        or qualified.subject in _RESERVED
        or len(name) > SUBJECT_CHARS_MAX
        or any(ord(letter) < 32 or 0x7F <= ord(letter) < 0xA0 for letter in name)
        or any(0xD800 <= ord(letter) <= 0xDFFF for letter in name)
    ):
        raise invalid_subject(name)
    return qualified


def settings_name(name: str | None) -> str | None:
    """What the settings of a subject, of a context or (None) of the registry are kept under."""
    if name is None or not name:
        return None
    qualified = qualify(name)
    if not qualified.subject:
        return qualified.context_name
    return qualified.name
