"""Which names are taken."""

from penstock.mirror.choice import NameFilter, pattern_error, split_list


def test_a_name_must_match_as_a_whole() -> None:
    chosen = NameFilter(("orders", "pay.*"), ("payroll",))
    taken = [name for name in ("orders", "orders2", "payments", "payroll") if chosen.takes(name)]
    assert taken == ["orders", "payments"]


def test_nothing_included_takes_nothing() -> None:
    assert not NameFilter(()).takes("")


def test_names_can_be_listed_where_none_is_a_pattern() -> None:
    assert NameFilter(("a-1", "b_2")).names == {"a-1", "b_2"}
    assert NameFilter(("a", "b.*")).names is None


def test_lists_have_commas_and_any_blanks() -> None:
    assert split_list(" a , b,,c ") == ("a", "b", "c")


def test_what_is_no_pattern_is_told() -> None:
    assert pattern_error(["ok"]) is None
    assert "'[' is no regular expression" in (pattern_error(["ok", "["]) or "")
