"""`ssl.principal.mapping.rules`: from the name in a client's certificate to the name of a user.

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, DEFAULT

The first rule whose pattern matches the whole name decides; DEFAULT takes the name as it is. L and
U change its case at the end.
"""

import re
from dataclasses import dataclass

from penstock.errors import ConfigError
from penstock.security.java_patterns import compile_java, expand

SETTING = "ssl.principal.mapping.rules"
_DEFAULT = "DEFAULT"
_PART = r"((?:\\.|[^\\/])*)"
_RULE = re.compile(rf"RULE:{_PART}/{_PART}/([LU]?)\s*(?:,|$)", re.DOTALL)
_DEFAULT_RULE = re.compile(rf"{_DEFAULT}\s*(?:,|$)")
_GAP = re.compile(r"[\s,]*")


class NoRuleApplies(ConfigError):
    """The name comes under no rule, so its bearer is nobody."""

    def __init__(self, name: str) -> None:
        super().__init__(f"No rules apply to {name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    pattern: re.Pattern[str]
    replacement: str
    case: str  # L, U or empty.

    def apply(self, name: str) -> str | None:
        if self.pattern.fullmatch(name) is None:
            return None
        result = self._replaced(name)
        if self.case:
            return result.lower() if self.case == "L" else result.upper()
        return result

    def _replaced(self, name: str) -> str:
        """Java replaces wherever the pattern is found, though it must match the whole first."""
        is_strict = self.pattern.groups == 0
        return self.pattern.sub(
            lambda match: expand(match, self.replacement, strict=is_strict), name
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateNames:
    """The rules of a listener."""

    _rules: tuple[_Rule | None, ...]  # None: DEFAULT.

    @classmethod
    def parse(cls, text: str) -> "CertificateNames":
        """ConfigError when a rule cannot be read."""
        rules: list[_Rule | None] = []
        at = _end(_GAP, text, 0)
        while at < len(text):
            if found := _DEFAULT_RULE.match(text, at):
                rules.append(None)
            elif found := _RULE.match(text, at):
                pattern = compile_java(SETTING, found[1])
                rules.append(_Rule(pattern=pattern, replacement=found[2], case=found[3]))
            else:
                raise ConfigError(f"{SETTING}: cannot be read from `{text[at:]}` on")
            at = _end(_GAP, text, found.end())
        return cls(_rules=tuple(rules))

    def user(self, distinguished_name: str) -> str:
        """The user behind a certificate; NoRuleApplies when there is none."""
        for rule in self._rules:
            name = distinguished_name if rule is None else rule.apply(distinguished_name)
            if name is not None:
                return name
        raise NoRuleApplies(distinguished_name)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
