import copy
import itertools
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlstate.automata import DFA, refinement, zoo

ROOT = Path(__file__).resolve().parents[2]


def random_dfa(rng, most_states=7, n_symbols=2, n_states=None):
    n = n_states or int(rng.integers(1, most_states + 1))
    return DFA(rng.integers(0, n, (n, n_symbols)), rng.random(n) < rng.random(), int(rng.integers(n)))


@st.composite
def dfas(draw, most_states=6, n_symbols=2):
    n = draw(st.integers(1, most_states))
    states = st.integers(0, n - 1)
    table = draw(st.lists(st.lists(states, min_size=n_symbols, max_size=n_symbols), min_size=n, max_size=n))
    return DFA(table, draw(st.lists(st.booleans(), min_size=n, max_size=n)), draw(states))


def words(n_symbols, longest):
    for length in range(longest + 1):
        yield from itertools.product(range(n_symbols), repeat=length)


def renumbered(dfa, rng):
    """The same automaton with its states in another order."""
    order = rng.permutation(dfa.n_states)
    number = np.argsort(order)
    return DFA(number[dfa.transitions[order]], dfa.accepting[order], number[dfa.start], dfa.alphabet)


def reversed_determinized(n_symbols, transitions, initial, accepting):
    """Subset construction on the reversed automaton: (table, initial {0}, accepting states)."""
    start = frozenset(accepting)
    number, queue, table = {start: 0}, [start], []
    for subset in queue:
        row = []
        for symbol in range(n_symbols):
            image = frozenset(q for q in range(len(transitions)) if transitions[q][symbol] in subset)
            if number.setdefault(image, len(queue)) == len(queue):
                queue.append(image)
            row.append(number[image])
        table.append(row)
    return table, {0}, {number[subset] for subset in queue if subset & initial}


def brzozowski_minimal(dfa):
    state = (dfa.transitions.tolist(), {dfa.start}, set(np.flatnonzero(dfa.accepting).tolist()))
    for _ in range(2):
        state = reversed_determinized(dfa.n_symbols, *state)
    table, _, accepting = state
    return DFA(table, [q in accepting for q in range(len(table))])


# --- words --------------------------------------------------------------------------------------------------------


def test_runs_words_of_symbol_indices():
    even = DFA([[0, 1], [1, 0]], [True, False], alphabet=("zero", "one"))
    assert even.accepts(())
    assert even.accepts([1, 0, 1])
    assert not even.accepts([1])
    assert even.run([1, 0]) == 1
    assert even.trace([1, 0, 1]).tolist() == [0, 1, 1, 0]
    assert even.trace(np.array([1], dtype=np.int8)).tolist() == [0, 1]
    assert even.encode("one zero one") == even.encode(["one", "zero", "one"]) == (1, 0, 1)
    assert even.decode((1, 0)) == ("one", "zero")
    assert DFA([[0, 0]], [True], alphabet="ab").encode("abba") == (0, 1, 1, 0)
    assert (even.n_states, even.n_symbols, even.alphabet) == (2, 2, ("zero", "one"))
    assert DFA([[0, 0]], [True]).alphabet == ("0", "1")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ([0, 2], "symbol 2 at position 1, but the symbols are 0 … 1"),
        ([-1], "symbol -1 at position 0"),
        ("01", "is a string: words are symbol indices, see DFA.encode"),
        ([0.5], "flat sequence of symbol indices"),
        ([[0, 1]], "flat sequence of symbol indices"),
    ],
)
def test_bad_words_are_named(word, message):
    with pytest.raises(ValueError, match=message):
        DFA([[0, 1], [1, 0]], [True, False]).run(word)


def test_unknown_symbol_name_is_named():
    with pytest.raises(ValueError, match=r"Unknown symbol 'c' at position 2: the alphabet is {'a', 'b'}"):
        DFA([[0, 0]], [True], alphabet="ab").encode("abc")


# --- validation and value semantics -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "at least one of each"),
        (([[]], [True]), "at least one of each"),
        (([0, 1], [True, False]), r"shape \(2,\)"),
        (([[0, 1], [0]], [True, False]), "rows differ"),
        (([[0.0, 1.0], [0.0, 1.0]], [True, False]), "float64 values, but states are integers 0 … 1"),
        (([[0, 2], [0, 0]], [True, False]), r"transitions\[0, 1\] is 2, but the states are 0 … 1"),
        (([[0, 1], [-1, 0]], [True, False]), r"transitions\[1, 0\] is -1.*DFA.from_partial"),
        (([[0, 1], [1, 0]], [0, 1]), "one bool for each of the 2 states"),
        (([[0, 1], [1, 0]], [True]), r"shape \(1,\), but must be one bool for each of the 2"),
        (([[0, 1], [1, 0]], [True, False], 2), "start is 2, but the states are 0 … 1"),
        (([[0, 1], [1, 0]], [True, False], -1), "start is -1"),
        (([[0, 1], [1, 0]], [True, False], 0.0), "start is 0.0"),
        (([[0, 1], [1, 0]], [True, False], 0, "abc"), "alphabet has 3 names, but transitions has 2 columns"),
        (([[0, 1], [1, 0]], [True, False], 0, "aa"), "names 'a' twice"),
        (([[0, 1], [1, 0]], [True, False], 0, [0, 1]), "alphabet holds 0, but symbol names are non-empty strings"),
        (([[0, 1], [1, 0]], [True, False], 0, ["", "a"]), "alphabet holds ''"),
    ],
)
def test_malformed_automata_are_refused_with_a_reason(arguments, message):
    with pytest.raises(ValueError, match=message):
        DFA(*arguments)


def test_partial_input_is_completed_only_when_asked():
    table = [[1, -1], [-1, 0]]
    with pytest.raises(ValueError, match=r"State 0 has no transition on symbol 'b'.*complete=.sink."):
        DFA.from_partial(table, [True, False], alphabet="ab")
    completed = DFA.from_partial(table, [True, False], alphabet="ab", complete="sink")
    assert completed.transitions.tolist() == [[1, 2], [2, 0], [2, 2]]
    assert completed.accepting.tolist() == [True, False, False]
    with pytest.raises(ValueError, match="complete is 'loop'"):
        DFA.from_partial(table, [True, False], complete="loop")
    whole = [[1, 0], [0, 1]]
    assert DFA.from_partial(whole, [True, False], complete="sink") == DFA(whole, [True, False])
    with pytest.raises(ValueError, match=r"transitions\[0, 0\] is -2"):
        DFA.from_partial([[-2, -1]], [True], complete="sink")


def test_immutable_and_a_copy_of_its_input():
    table, accepting = np.array([[0, 1], [1, 0]]), np.array([True, False])
    dfa = DFA(table, accepting)
    table[0, 0], accepting[0] = 1, False
    assert dfa == DFA([[0, 1], [1, 0]], [True, False])
    for other in (dfa, pickle.loads(pickle.dumps(dfa)), copy.deepcopy(dfa)):
        assert other == dfa
        with pytest.raises(ValueError, match="read-only"):
            other.transitions[0, 0] = 1
        with pytest.raises(ValueError, match="read-only"):
            other.accepting[0] = False
        with pytest.raises(AttributeError, match="immutable"):
            other.start = 1
        with pytest.raises(AttributeError, match="immutable"):
            del other.start


def test_equality_hash_and_repr():
    dfa = DFA([[0, 1], [1, 0]], [True, False])
    same = DFA([[0, 1], [1, 0]], np.array([True, False]), np.int32(0), ["0", "1"])
    assert dfa == same
    assert hash(dfa) == hash(same)
    assert len({dfa, same}) == 1
    assert dfa != DFA([[0, 1], [1, 0]], [True, False], 1)
    assert dfa != DFA([[0, 1], [1, 0]], [True, False], 0, "ab")
    assert dfa != DFA([[0, 1], [1, 0]], [False, False])
    assert dfa != "parity"
    assert repr(dfa) == "DFA(2 states, 1 accepting, start 0, over {'0', '1'})"
    assert len(repr(zoo.make("mined_ean"))) < 120


# --- canonical forms ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moore_rounds", [0, 2, 10**9], ids=["hopcroft", "hybrid", "moore"])
def test_minimization_agrees_with_brzozowski(monkeypatch, moore_rounds):
    monkeypatch.setattr(refinement, "_MOORE_ROUNDS", moore_rounds)
    rng = np.random.default_rng(0)
    shrunk = 0
    for i in range(2000):
        dfa = random_dfa(rng, n_symbols=1 + i % 3)
        minimal = dfa.minimize()
        assert minimal == brzozowski_minimal(dfa).reachable()
        shrunk += minimal.n_states < dfa.reachable().n_states
    assert 300 < shrunk < 1700  # merging and leaving alone are both exercised


@settings(max_examples=150, deadline=None)
@given(dfas(), st.randoms(use_true_random=False))
def test_canonical_forms_ignore_the_numbering_and_keep_the_language(dfa, random):
    other = renumbered(dfa, np.random.default_rng(random.randrange(2**32)))
    minimal = dfa.minimize()
    assert other.reachable() == dfa.reachable()
    assert other.minimize() == minimal == minimal.minimize()
    assert other.digest() == dfa.digest()
    assert other.isomorphic(dfa)
    assert minimal.isomorphic(dfa, minimize=True)
    for word in words(2, 6):
        assert dfa.accepts(word) == minimal.accepts(word) == dfa.reachable().accepts(word)


def test_isomorphism_sees_what_minimization_removes():
    parity = zoo.make("parity")
    twice = DFA([[0, 1], [1, 2], [2, 3], [3, 0]], [True, False, True, False])
    assert not parity.isomorphic(twice)
    assert parity.isomorphic(twice, minimize=True)
    assert not parity.isomorphic(parity.complement(), minimize=True)


def test_digest_is_the_content_s():
    dfa = DFA([[0, 1], [1, 0], [2, 2]], [True, False, True])
    assert len(dfa.digest()) == 64
    assert dfa.digest() == zoo.make("parity").digest()  # the unreachable state is no content
    others = [DFA([[0, 1], [1, 0]], [True, False], 0, "ab"), DFA([[0, 1], [1, 1]], [True, False])]
    others += [zoo.make("parity").complement(), DFA([[0, 1, 0], [1, 0, 1]], [True, False])]
    assert len({d.digest() for d in [dfa, *others]}) == 5


def test_many_states_are_no_trouble():
    n = 100_000
    q = np.arange(n)
    chain = DFA(np.minimum(q + 1, n - 1)[:, None], q == n - 1)  # Moore's algorithm alone would need n rounds
    assert chain.minimize().n_states == n
    ring = DFA(((q + 1) % n)[:, None], q % 1000 == 0)
    assert ring.minimize().n_states == 1000
    assert ring.equivalent(DFA(((q[:1000] + 1) % 1000)[:, None], q[:1000] == 0)) is None
    assert len(chain.equivalent(chain.complement().complement().product(chain, "difference"))) == n - 1


# --- languages ----------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(dfas(5), dfas(5))
def test_counterexample_is_a_shortest_difference(a, b):
    found = a.equivalent(b)
    if found is None:
        assert a.minimize() == b.minimize()
        assert a.product(b, "xor").is_empty()
        return
    assert a.accepts(found) != b.accepts(found)
    assert all(a.accepts(word) == b.accepts(word) for word in words(2, len(found) - 1))
    assert a.minimize() != b.minimize()


def test_counterexample_is_shortest_among_large_near_copies():
    rng = np.random.default_rng(1)
    lengths = set()
    for _ in range(40):
        a = random_dfa(rng, n_states=30).reachable()
        accepting = a.accepting.copy()
        accepting[-1] ^= True  # the last in breadth-first order: far from the start
        b = renumbered(DFA(a.transitions, accepting), rng)
        word = a.equivalent(b)
        assert a.accepts(word) != b.accepts(word)
        distances = {0: 0}
        for state in a.reachable_states():
            for successor in a.transitions[state]:
                distances.setdefault(int(successor), distances[int(state)] + 1)
        assert len(word) == distances[a.n_states - 1]
        assert word == a.equivalent(renumbered(b, rng)) == renumbered(a, rng).equivalent(b)
        lengths.add(len(word))
    assert len(lengths) > 3


def test_the_empty_word_is_a_counterexample():
    assert zoo.make("parity").equivalent(zoo.make("parity").complement()) == ()


@settings(max_examples=60, deadline=None)
@given(dfas(4), dfas(4))
def test_boolean_operations_word_by_word(a, b):
    products = {op: a.product(b, op) for op in ("and", "or", "xor", "difference")}
    complement = a.complement()
    for word in words(2, 6):
        p, q = a.accepts(word), b.accepts(word)
        assert complement.accepts(word) is not p
        assert products["and"].accepts(word) == (p and q)
        assert products["or"].accepts(word) == (p or q)
        assert products["xor"].accepts(word) == (p != q)
        assert products["difference"].accepts(word) == (p and not q)
    accepted = any(a.accepts(word) for word in words(2, a.n_states))
    assert a.accepts_some() == accepted == (not a.is_empty())


def test_alphabets_must_match():
    ab, ba, indices = (DFA([[0, 1], [1, 1]], [False, True], 0, names) for names in ("ab", "ba", None))
    with pytest.raises(ValueError, match=r"alphabets differ: \{'a', 'b'\} and \{'b', 'a'\} \(reorder one"):
        ab.equivalent(ba)
    assert ab.equivalent(ba.with_alphabet("ab")) == (0,)  # b is now the second symbol
    assert ab.equivalent(indices) is None  # names that are bare indices go with any
    assert ab.product(indices, "and").alphabet == indices.product(ab, "and").alphabet == ("a", "b")
    with pytest.raises(ValueError, match="alphabets differ"):
        indices.equivalent(DFA([[0, 1], [1, 1]], [False, True], 0, "10"))
    with pytest.raises(ValueError, match="alphabets differ"):
        ab.product(DFA([[0]], [True]), "and")
    with pytest.raises(ValueError, match="does not hold the same names"):
        ab.with_alphabet("ac")
    with pytest.raises(ValueError, match="op is 'nand'"):
        ab.product(ab, "nand")


def test_permutation_looks_at_reachable_states_only():
    assert zoo.make("parity").is_permutation()
    assert not zoo.make("mod_2").is_permutation()
    assert DFA([[0, 1], [1, 0], [0, 0]], [True, False, False]).is_permutation()


def test_importing_the_automata_loads_no_torch():
    check = "import sys, rlstate.automata; assert 'torch' not in sys.modules and 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], cwd=ROOT, check=True)
