"""Patterns match as Kafka's do, are refused in its words, and none takes long, however made."""

import re
from contextlib import suppress

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InvalidRegularExpression
from penstock.groups.patterns import pattern as patterns_of
from penstock.groups.patterns.pattern import TopicPattern

NAMES = ["a", "b", "ab", "aB", "A", "k", "K", "s", "a.b", "a-b", "a_b", "0", "00", "aab", "orders"]


def matching(pattern: str) -> list[str]:
    return sorted(TopicPattern(pattern).select(NAMES))


# The answers are those of RE2/J, which Apache Kafka uses.
@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("", []),
        ("a", ["a"]),  # A whole name, and not a part of it.
        ("a.*", ["a", "a-b", "a.b", "aB", "a_b", "aab", "ab"]),
        (r"a\.b", ["a.b"]),
        ("a|k", ["a", "k"]),
        ("(?:a|o)(b|rders)", ["ab", "orders"]),
        ("(?P<first>a)(?<second>b)", ["ab"]),
        ("(?i)AB", ["aB", "ab"]),
        ("(?i:a)b", ["ab"]),
        ("(?i)a(?-i)B", ["aB"]),
        ("(?i)\u212a", ["K", "k"]),  # The Kelvin sign.
        ("(?i)\u017f", ["s"]),  # The long s.
        ("a{2}b", ["aab"]),
        ("a{1,2}b", ["aab", "ab"]),
        ("0{1,}", ["0", "00"]),
        ("0{2,3}?", ["00"]),
        ("a{0}b", ["b"]),
        ("a?b", ["ab", "b"]),
        ("a+?b", ["aab", "ab"]),
        ("[a-c]", ["a", "b"]),
        ("[^a-c]", ["0", "A", "K", "k", "s"]),
        ("[]a]", ["a"]),
        ("[a-]", ["a"]),
        ("[[:upper:]]", ["A", "K"]),
        ("[[:^lower:]]", ["0", "A", "K"]),
        (r"[\d_]", ["0"]),
        (r"a[\W]b", ["a-b", "a.b"]),
        (r"a\wb", ["a_b", "aab"]),
        (r"\p{Lu}", ["A", "K"]),
        (r"\PL", ["0"]),
        (r"\p{^Lu}", ["0", "a", "b", "k", "s"]),
        (r"\p{Greek}", []),
        (r"\p{Latin}{2}", ["aB", "ab"]),
        (r"\Qa.b\E", ["a.b"]),
        (r"\Qa.b", ["a.b"]),
        (r"\x61\x{62}", ["ab"]),
        (r"\141b", ["ab"]),
        ("^ab$", ["ab"]),
        (r"\Aab\z", ["ab"]),
        (r"a\b.\bb", ["a-b", "a.b"]),
        (r"a\B.\Bb", ["a_b", "aab"]),
        ("a(?i)*b", ["aB", "aab", "ab", "b"]),  # Flags are no thing that could be repeated.
        ("a{,2}", []),  # No count, so braces.
        ("\u00e9", []),
    ],
)
def test_a_pattern_matches_these_names(pattern: str, names: list[str]) -> None:
    assert matching(pattern) == sorted(names)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a", "missing closing )"),
        ("a)", "unexpected )"),
        ("[a", "missing closing ]"),
        ("[", "missing closing ]"),
        ("*a", "missing argument to repetition operator"),
        ("a|*", "missing argument to repetition operator"),
        ("(+a)", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{2}{3}", "invalid nested repetition operator"),
        ("a*+", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("a{3,2}", "invalid repeat count"),
        ("(a{500}){3}", "invalid repeat count"),  # Repetitions of repetitions count together.
        ("(a{1000}){1000}", "invalid repeat count"),
        ("((((a{9}){9}){9}){9}){9}", "invalid repeat count"),
        ("a\\", "trailing backslash at end of expression"),
        (r"\1", "invalid escape sequence"),
        (r"\8", "invalid escape sequence"),
        (r"\y", "invalid escape sequence"),
        (r"\Z", "invalid escape sequence"),
        (r"\x", "invalid escape sequence"),
        (r"\x{110000}", "invalid escape sequence"),
        (r"[a-\d]", "invalid escape sequence"),
        (r"\p{Foo}", "invalid character class range"),
        (r"\p{", "invalid character class range"),
        (r"\p", "invalid character class range"),
        ("[z-a]", "invalid character class range"),
        ("[[:foo:]]", "invalid character class range"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?!a)", "invalid or unsupported Perl syntax"),
        ("(?P=n)", "invalid or unsupported Perl syntax"),
        ("(?i", "invalid or unsupported Perl syntax"),
        ("(?-)a", "invalid or unsupported Perl syntax"),
        ("(?<>a)", "invalid named capture"),
        ("a" * 10_001, "expression is too large"),
        (r"\w{1000}" * 8, "expression is too large"),
        (r"\pL{1000}", "expression is too large"),
    ],
)
def test_a_bad_pattern_is_refused_in_the_words_of_kafka(pattern: str, reason: str) -> None:
    with pytest.raises(InvalidRegularExpression) as refused:
        TopicPattern(pattern)
    assert str(refused.value).endswith(f"is not a valid regular expression: {reason}.")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("(?<n>a)(?<n>b)", ["ab"]),  # One name for two groups.
        (r"a\C", ["aB", "ab"]),  # Any byte.
        ("a{" + "9" * 30 + "}", []),  # No count, so braces.
        ("(" * 1_001 + "a" + ")" * 1_001, ["a"]),
    ],
)
def test_re2_takes_some_patterns_that_kafka_refuses(pattern: str, names: list[str]) -> None:
    assert matching(pattern) == names


@pytest.mark.parametrize(
    "pattern",
    [
        "(a*)*b",
        "(a|a)*b",
        "(.*)(.*)(.*)(.*)(.*)(.*)b",
        "(a?){50}a{50}b",
        "(((()))*)*",
        "((){30}){30}",
        "(()|()){1000}",
    ],
)
def test_patterns_that_ruin_others_read_a_long_name_once(pattern: str) -> None:
    assert TopicPattern(pattern).select(["a" * 249, "a" * 248 + "c"]) == frozenset()


def test_a_pattern_that_takes_too_long_is_refused_rather_than_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    spent_s = iter(range(1_000))  # A processor that is a second older each time it is asked.
    monkeypatch.setattr(patterns_of, "thread_time", lambda: next(spent_s))
    monkeypatch.setattr(patterns_of, "EFFORT_S_MAX", 5)
    names = (asked.append(name) or name for name in map(str, range(1_000)))  # type: ignore[func-returns-value]
    with pytest.raises(InvalidRegularExpression, match="takes too long"):
        TopicPattern(".*").select(names)
    assert len(asked) == 6


def test_many_names_are_no_reason_to_refuse_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    spent_s = (number * 9e-6 for number in range(200_000))
    monkeypatch.setattr(patterns_of, "thread_time", lambda: next(spent_s))
    names = [str(number) for number in range(100_000)]
    assert len(TopicPattern("1.*").select(names)) == 11_111


def test_what_a_machine_and_one_name_may_take_is_bounded() -> None:
    costly = TopicPattern("(0|1)*1(0|1){900}")._machine()
    assert costly.options.max_mem == patterns_of.MEMORY_BYTES_MAX
    assert costly.programsize <= patterns_of.PROGRAM_MAX
    assert costly.groups == 0


def test_a_machine_that_runs_out_of_memory_finds_the_same() -> None:
    names = [f"{number:020b}" * 12 for number in range(0, 1 << 20, 39_989)]
    expected = {name for name in names if name[-201] == "1"}
    assert TopicPattern("(0|1)*1(0|1){200}").select(names) == expected


def test_many_patterns_share_what_is_kept_of_machines() -> None:
    kept = [TopicPattern(f"topic-{number}") for number in range(1_000)]
    assert re2._Regexp._make.cache_info().currsize <= 128
    assert kept[0].select(["topic-0", "topic-1"]) == {"topic-0"}


letters = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "c", "-"])
patterns = st.recursive(
    letters,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda both: f"({both[0]}|{both[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}"])).map(
            lambda both: f"({both[0]}){both[1]}"
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(pattern=patterns, names=st.lists(st.text("abc-", max_size=6), max_size=10))
def test_where_python_means_the_same_it_finds_the_same(pattern: str, names: list[str]) -> None:
    expected = {name for name in names if re.fullmatch(pattern, name)}
    assert TopicPattern(pattern).select(names) == expected


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("ab([{|)]}*+?\\pPxQE^$-,:01<>iK"), max_size=20))
def test_any_text_is_a_pattern_or_refused(text: str) -> None:
    with suppress(InvalidRegularExpression):
        TopicPattern(text).select(NAMES)
