import itertools
import pickle

import numpy as np
import pytest

from rlstate.automata import DFA, from_regex, structure, zoo
from rlstate.automata.structure import (
    MonoidTooLarge,
    TooManySubsets,
    diameter,
    is_permutation,
    is_star_free,
    is_synchronizing,
    min_image_size,
    shortest_reset_word,
    stabilizers,
    syntactic_monoid,
    transition_monoid,
)


def random_dfa(rng, n_states, n_symbols=2):
    return DFA(
        rng.integers(0, n_states, (n_states, n_symbols)), rng.random(n_states) < 0.5, int(rng.integers(n_states))
    )


def random_dfas(seed, count, most_states=5, n_symbols=2):
    rng = np.random.default_rng(seed)
    return [random_dfa(rng, int(rng.integers(1, most_states + 1)), n_symbols) for _ in range(count)]


def cerny(n):
    """Černý's automaton: its shortest reset word has length (n − 1)²."""
    q = np.arange(n)
    return DFA(np.stack([(q + 1) % n, np.where(q == n - 1, 0, q)], axis=1), q == 0)


def transformations(dfa):
    """All transformations by closing under composition until nothing is new."""
    table = dfa.reachable().transitions
    found = {tuple(range(len(table)))} | {tuple(column) for column in table.T.tolist()}
    while True:
        grown = found | {tuple(g[q] for q in f) for f in found for g in found}
        if len(grown) == len(found):
            return found
        found = grown


# --- monoids ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dfa", "size"),
    [
        (zoo.make("workflow_reconcile"), 5),  # Z_5
        (zoo.make("workflow_reconcile", k=12), 12),
        (zoo.make("parity"), 2),
        (zoo.make("mod_3"), 6),  # affine maps: 3 translations, 2 a unit of order 2
        (zoo.make("mod_5"), 20),
        (zoo.make("mod_7"), 21),  # 2 has order 3 modulo 7
        (zoo.make("mod_2"), 3),  # the identity and two constants
        (DFA([[1, 1, 0], [2, 0, 1], [0, 2, 0]], [True, False, False]), 27),  # all maps of three states
        (DFA([[0]], [True]), 1),
    ],
)
def test_known_monoids(dfa, size):
    monoid = transition_monoid(dfa)
    assert len(monoid) == size
    assert monoid.elements.shape == (size, dfa.n_states)
    assert len(transition_monoid(dfa, max_size=size)) == size
    if size > 1:
        with pytest.raises(MonoidTooLarge, match=f"more than {size - 1} elements; raise max_size"):
            transition_monoid(dfa, max_size=size - 1)


def test_monoid_is_every_transformation_with_a_shortest_word():
    for dfa in random_dfas(0, 60, most_states=4):
        monoid, table = transition_monoid(dfa), dfa.reachable().transitions
        assert {tuple(row) for row in monoid.elements.tolist()} == transformations(dfa)
        assert len({tuple(row) for row in monoid.elements.tolist()}) == len(monoid) == len(monoid.words)
        for element, word in zip(monoid.elements, monoid.words):
            state = np.arange(len(table))
            for symbol in word:
                state = table[state, symbol]
            assert (state == element).all()
        assert (monoid.elements[monoid.generators] == table.T).all()
        lengths = [len(word) for word in monoid.words]
        assert lengths == sorted(lengths)
        assert monoid.words[0] == ()


def test_syntactic_monoid_is_the_language_s():
    twice = DFA([[0, 1], [1, 2], [2, 3], [3, 0]], [True, False, True, False])  # parity, counted modulo 4
    assert len(transition_monoid(twice)) == 4
    assert len(syntactic_monoid(twice)) == len(syntactic_monoid(zoo.make("parity"))) == 2


@pytest.mark.parametrize(
    ("dfa", "answer"),
    [
        (zoo.make("no_three_zeros"), True),
        (zoo.make("contains_0010"), True),
        (zoo.make("ends_with_1000"), True),
        (zoo.make("workflow_api"), True),
        (zoo.make("workflow_latch"), True),
        (zoo.make("workflow_quota"), True),
        (zoo.make("mod_2"), True),
        (from_regex("(ab)*"), True),
        (zoo.make("parity"), False),
        (zoo.make("mod_3"), False),
        (zoo.make("mod_6"), False),
        (zoo.make("mined_ean"), False),
        (from_regex("(aa)*"), False),
        (from_regex("(aa)*", "ab"), False),
    ],
)
def test_star_free_languages(dfa, answer):
    assert is_star_free(dfa) is answer


def test_star_freeness_is_the_language_s_not_the_automaton_s():
    everything = DFA([[1], [0]], [True, True])  # the automaton has a group, the language none
    assert is_star_free(everything)
    assert is_star_free(DFA([[0, 0], [2, 1], [1, 2]], [True, True, False]))  # the group is unreachable


def test_star_freeness_against_powers_of_every_transformation():
    answers = []
    for dfa in random_dfas(1, 150, most_states=4):
        aperiodic = True
        for element in transformations(dfa.minimize()):
            powers = [element]
            while powers[-1] not in powers[:-1]:
                powers.append(tuple(element[q] for q in powers[-1]))
            aperiodic &= powers[-1] == powers[-2] if len(powers) > 1 else True
        assert is_star_free(dfa) == aperiodic
        answers.append(aperiodic)
    assert 20 < sum(answers) < 130


def test_a_group_is_reported_however_large_the_monoid():
    n = 9  # a cycle and a transposition generate the symmetric group, 362880 elements
    q = np.arange(n)
    swap = q.copy()
    swap[:2] = [1, 0]
    dfa = DFA(np.stack([(q + 1) % n, swap], axis=1), q == 0)
    assert not is_star_free(dfa, max_size=10)
    with pytest.raises(MonoidTooLarge) as caught:
        transition_monoid(dfa, max_size=1000)
    assert pickle.loads(pickle.dumps(caught.value)).max_size == 1000


@pytest.mark.parametrize(("n", "minimal", "groups", "star_free"), [(1, 2, 2, 2), (2, 24, 6, 10), (3, 1028, 78, 162)])
def test_the_census_of_small_minimal_automata(n, minimal, groups, star_free):
    """Minimal binary DFAs (OEIS A129622), those of group languages, and those of star-free languages."""
    languages = set()
    for table in itertools.product(range(n), repeat=2 * n):
        # The complement, counted below, has the same structure.
        for accepting in itertools.product((False, True), repeat=n - 1):
            dfa = DFA(np.reshape(table, (n, 2)), (True, *accepting))
            if len(dfa.reachable_states()) == n and (least := dfa.minimize()).n_states == n:
                languages.add(least)
    assert 2 * len(languages) == minimal
    assert 2 * sum(map(is_permutation, languages)) == groups
    assert 2 * sum(map(is_star_free, languages)) == star_free


# --- synchronization ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 10])
def test_cerny_s_automata_need_the_longest_known_reset_words(n):
    word = shortest_reset_word(cerny(n))
    assert len(word) == (n - 1) ** 2
    assert is_synchronizing(cerny(n))
    assert len({DFA(cerny(n).transitions, cerny(n).accepting, q).run(word) for q in range(n)}) == 1


def test_synchronization_against_brute_force():
    outcomes = []
    for dfa in random_dfas(2, 150, most_states=5):
        table = dfa.reachable().transitions
        sizes = {len(set(element)) for element in transformations(dfa)}
        assert min_image_size(dfa) == min(sizes)
        assert is_synchronizing(dfa) == (min(sizes) == 1)
        word = shortest_reset_word(dfa)
        outcomes.append(word is not None)
        if word is None:
            assert min(sizes) > 1
            continue
        subsets = {frozenset(range(len(table)))}
        for _ in word:
            assert all(len(subset) > 1 for subset in subsets)  # nothing shorter resets
            subsets = {frozenset(table[list(subset), a].tolist()) for subset in subsets for a in range(2)}
        states = np.arange(len(table))
        for symbol in word:
            states = table[states, symbol]
        assert len(set(states.tolist())) == 1
    assert 20 < sum(outcomes) < 150


def test_synchronization_of_the_zoo():
    for name, rank in [("mod_2", 1), ("ends_with_101", 1), ("no_three_zeros", 1), ("mod_6", 3), ("workflow_latch", 2)]:
        assert min_image_size(zoo.make(name)) == rank
        assert is_synchronizing(zoo.make(name)) == (rank == 1)
    assert shortest_reset_word(zoo.make("parity")) is None
    assert shortest_reset_word(zoo.make("no_three_zeros")) == (0, 0, 0)
    for name in zoo.names():
        dfa = zoo.make(name)
        assert (min_image_size(dfa) == dfa.n_states) == is_permutation(dfa)


def test_reset_search_is_capped():
    with pytest.raises(TooManySubsets, match="12 states saw more than max_subsets=100 subsets"):
        shortest_reset_word(cerny(12), max_subsets=100)


# --- the rest -----------------------------------------------------------------------------------------------------


def test_diameter_against_floyd_and_warshall():
    greatest = []
    for dfa in random_dfas(3, 150, most_states=7):
        table = dfa.reachable().transitions
        n = len(table)
        distance = np.full((n, n), np.inf)
        for p in range(n):
            distance[p, table[p]] = 1
            distance[p, p] = 0
        for middle in range(n):
            distance = np.minimum(distance, distance[:, [middle]] + distance[[middle], :])
        assert diameter(dfa) == distance[np.isfinite(distance)].max()
        greatest.append(diameter(dfa))
    assert max(greatest) >= 5
    assert diameter(cerny(10)) == 9
    assert diameter(DFA([[0]], [True])) == 0


def test_stabilizers_fix_reachable_states():
    assert stabilizers(DFA([[0, 1, 0], [1, 0, 1], [0, 2, 0]], [True, False, True])) == [0, 2]
    assert stabilizers(zoo.make("parity")) == [0]
    assert stabilizers(zoo.make("mod_5")) == []


def test_structure_ignores_unreachable_states_and_numbering():
    parity = zoo.make("parity")
    hidden = DFA([[0, 0, 0], [1, 1, 2], [2, 2, 1]], [True, True, False], 1)
    seen = DFA([[0, 0, 1], [1, 1, 0]], [True, False])
    for question in (min_image_size, diameter, is_permutation, is_synchronizing, stabilizers, shortest_reset_word):
        assert question(hidden) == question(seen)
    assert (transition_monoid(hidden).elements == transition_monoid(seen).elements).all()
    assert structure.is_permutation(parity)


def test_a_thousand_states_take_no_time():
    rng = np.random.default_rng(4)
    dfa = random_dfa(rng, 600)
    assert is_synchronizing(dfa) == (min_image_size(dfa) == 1)
    assert diameter(dfa) > 5
