import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlstate.automata import DFA, from_regex, zoo


def words(symbols, longest):
    for length in range(longest + 1):
        yield from map("".join, itertools.product(symbols, repeat=length))


def accepts(dfa, word):
    return dfa.accepts(dfa.encode(word))


atoms = st.sampled_from(["0", "1", "2", ".", "[01]", "[^0]", "[0-2]", "[2-]", "()", r"\1"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("({}|{})".format, inner, inner),
        st.builds("{}{}".format, inner, inner),
        st.builds("({}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "{0}"])),
    ),
    max_leaves=7,
)


@settings(max_examples=200, deadline=None)
@given(patterns)
def test_agrees_with_python_on_every_short_word(pattern):
    dfa = from_regex(pattern, "012-")
    compiled = re.compile(pattern.replace(r"\1", "1"))
    for word in words("012-", 4):
        assert accepts(dfa, word) == bool(compiled.fullmatch(word)), word
    assert dfa == dfa.minimize()


@settings(max_examples=100, deadline=None)
@given(patterns, patterns)
def test_intersection_and_complement_are_those_of_languages(a, b):
    first, second = from_regex(a, "012-"), from_regex(b, "012-")
    assert from_regex(f"({a})&({b})", "012-") == first.product(second, "and").minimize()
    assert from_regex(f"~({a})", "012-") == first.complement().minimize()
    assert from_regex(f"({a})|({b})", "012-") == first.product(second, "or").minimize()


@pytest.mark.parametrize(
    ("pattern", "task"),
    [
        ("(0*10*1)*0*", "parity"),
        ("(0|1)*0|", "mod_2"),
        ("(0|1(01*0)*1)*", "mod_3"),
        ("(0|1)*101", "ends_with_101"),
        (".*0010.*", "contains_0010"),
        ("~(.*000.*)", "no_three_zeros"),
        ("1*(01+|001+)*0{0,2}", "no_three_zeros"),
    ],
)
def test_zoo_languages(pattern, task):
    assert from_regex(pattern, "01") == zoo.make(task).minimize()


def test_precedence():
    for loose, tight in [
        ("a|bc*", "a|(b(c*))"),
        ("ab&.*b|c", "((ab)&(.*b))|c"),
        ("~ab", "(~a)b"),
        ("~a*", "~(a*)"),
        ("~~a", "a"),
        ("a{2}{3}", "a{6}"),
        ("[]|a", "a"),
        ("a|", "a?"),
    ]:
        assert from_regex(loose, "abc") == from_regex(tight, "abc"), loose


def test_alphabet_is_what_occurs_sorted_unless_given():
    assert from_regex("(ba)*").alphabet == ("a", "b")
    assert from_regex("a", "cab").alphabet == ("c", "a", "b")
    assert from_regex("[a-d]").alphabet == ("a", "b", "c", "d")
    assert from_regex("[^a]b").alphabet == ("a", "b")
    assert from_regex(r"\*|\\|\.").alphabet == ("*", ".", "\\")
    assert from_regex("a b").alphabet == (" ", "a", "b")
    assert from_regex("", "a") == DFA([[1], [1]], [True, False], 0, "a")


@pytest.mark.parametrize(
    ("pattern", "position", "message"),
    [
        ("a(b", 1, r"this \( is not closed"),
        ("ab)", 2, r"this \) closes nothing"),
        ("*a", 0, r"\* stands after nothing"),
        ("a|+", 2, r"\+ stands after nothing"),
        ("a{3,2}", 1, "bounds 3 and 2 are the wrong way round"),
        ("a{", 2, "expected a number"),
        ("a{x}", 2, "expected a number"),
        ("a{2", 3, "expected }"),
        ("a{12345678}", 2, "too large"),
        ("a[bc", 1, r"this \[ is not closed"),
        ("a[c-b]", 2, "range is empty"),
        ("ab\\", 2, "needs a character after it"),
        ("^ab", 0, "is not needed: the whole word is matched"),
        ("ab$", 2, "is not needed"),
        ("a~", 2, "~ needs an expression"),
        ("a}", 1, "} stands after nothing"),
    ],
)
def test_syntax_errors_point_at_the_place(pattern, position, message):
    with pytest.raises(ValueError, match=f"position {position}: .*{message}") as caught:
        from_regex(pattern)
    _sentence, shown, caret = str(caught.value).split("\n")
    assert shown == f"  {pattern}"
    assert caret == "  " + " " * position + "^"


def test_other_errors():
    with pytest.raises(ValueError, match="position 1: the symbol 'c' is not in the alphabet 'ab'"):
        from_regex("ac", "ab")
    with pytest.raises(ValueError, match="contains no symbol; give the symbols by alphabet="):
        from_regex(".*")
    with pytest.raises(ValueError, match="alphabet holds 'ab', but in a regular expression symbols are single"):
        from_regex("a", ["ab"])
    with pytest.raises(ValueError, match="more than max_states=1000 states"):
        from_regex("(0|1)*1(0|1){20}", max_states=1000)
    with pytest.raises(ValueError, match="too many operators inside one another"):
        from_regex("(" * 3000 + "a" + ")*" * 3000)
    with pytest.raises(ValueError, match="a regular expression is a string"):
        from_regex(5)


def test_long_patterns_are_no_deep_ones():
    assert from_regex("ab" * 3000).n_states == 6002
    assert from_regex("a{500}b{0,500}").n_states == 1002
    assert from_regex("(0|1)*1(0|1){9}").n_states == 1024
    assert from_regex("a?" * 300, "a").n_states == 302
