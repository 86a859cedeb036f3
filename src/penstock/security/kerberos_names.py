"""`sasl.kerberos.principal.to.local.rules`: from `service/host@REALM` to the name of a user.

    RULE:[2:$1@$0](.*@EXAMPLE.COM)s/@.*//, DEFAULT

A rule is for names of so many components, puts them together by a format, asks whether the result
matches, and substitutes. DEFAULT takes the first component of names of the broker's own realm.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.errors import ConfigError
from penstock.security.certificate_names import NoRuleApplies
from penstock.security.java_patterns import compile_java, expand

SETTING = "sasl.kerberos.principal.to.local.rules"
_NAME = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE = re.compile(
    r"(?:(DEFAULT)|RULE:\[(\d+):([^\]]*)\](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g)?)?)/?(L)?"
)
_PARAMETER = re.compile(r"\$(\d*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosName:
    """A principal of Kerberos."""

    service: str
    host: str | None
    realm: str | None

    @classmethod
    def parse(cls, text: str) -> "KerberosName":
        found = _NAME.fullmatch(text)
        if found:
            return cls(service=found[1], host=found[2], realm=found[3])
        if "@" in text:
            raise ConfigError(f"Malformed Kerberos name: {text}")
        return cls(service=text, host=None, realm=None)

    def __str__(self) -> str:
        host = f"/{self.host}" if self.host is not None else ""
        realm = f"@{self.realm}" if self.realm is not None else ""
        return f"{self.service}{host}{realm}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _LocalRule:
    components: int
    form: str
    match: re.Pattern[str] | None
    replaced: re.Pattern[str] | None
    replacement: str
    repeats: bool
    lowers: bool

    def apply(self, parts: Sequence[str]) -> str | None:
        if len(parts) - 1 != self.components:
            return None
        text = _PARAMETER.sub(lambda found: _parameter(found, parts), self.form)
        if self.match is not None and self.match.fullmatch(text) is None:
            return None
        if self.replaced is not None:
            count = 0 if self.repeats else 1
            text = self.replaced.sub(lambda m: expand(m, self.replacement), text, count=count)
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosNames:
    """The rules of a broker, and its realm."""

    default_realm: str
    _rules: tuple[_LocalRule | None, ...]  # None: DEFAULT.

    @classmethod
    def parse(cls, rules: Iterable[str], *, default_realm: str) -> "KerberosNames":
        """ConfigError when a rule cannot be read."""
        return cls(default_realm=default_realm, _rules=tuple(map(_rule, rules)))

    def user(self, name: KerberosName) -> str:
        """The user behind a principal; NoRuleApplies when there is none."""
        if name.realm is None and name.host is None:
            return name.service
        parts = [name.realm or "", name.service]
        if name.host is not None:
            parts.append(name.host)
        for rule in self._rules:
            result = self._apply(rule, parts)
            if result is None:
                continue
            if "/" in result or "@" in result:  # A name that is still one of Kerberos.
                raise NoRuleApplies(str(name))
            return result.lower() if rule is not None and rule.lowers else result
        raise NoRuleApplies(str(name))

    def _apply(self, rule: _LocalRule | None, parts: Sequence[str]) -> str | None:
        if rule is not None:
            return rule.apply(parts)
        return parts[1] if parts[0] == self.default_realm else None


def _rule(text: str) -> _LocalRule | None:
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{SETTING}: `{text}` is no rule")
    default, components, form, match, replaced, replacement, repeats, lowers = found.groups()
    if default:
        return None
    return _LocalRule(
        components=int(components),
        form=form,
        match=compile_java(SETTING, match) if match is not None else None,
        replaced=compile_java(SETTING, replaced) if replaced is not None else None,
        replacement=replacement or "",
        repeats=bool(repeats),
        lowers=bool(lowers),
    )


def _parameter(found: re.Match[str], parts: Sequence[str]) -> str:
    if not found[1] or int(found[1]) >= len(parts):
        raise ConfigError(f"{SETTING}: {found[0]} is outside of 0 to {len(parts) - 1}")
    return parts[int(found[1])]
