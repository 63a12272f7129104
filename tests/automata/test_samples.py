"""Labelled words from files: what is read, and what a damaged file says."""

from __future__ import annotations

import gzip
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlstate.automata.samples import Sample, load_sample


@pytest.fixture
def write(tmp_path):
    def write(text, name="sample.a"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


ABBADINGO = "4 3\n1 3 0 1 0\n0 0\n1 1 2\n1 1 2\n"
READ = Sample(((0, 1, 0), (), (2,), (2,)), (True, False, True, True), ("0", "1", "2"))


def test_abbadingo(write):
    assert load_sample(write(ABBADINGO)) == READ
    assert load_sample(str(write(ABBADINGO.replace("\n", " \r\n") + "\n\n"))) == READ
    assert load_sample(write("\ufeff" + ABBADINGO)) == READ


def test_attributes_are_left_out(write):
    assert load_sample(write("4 3:2\n1 3 0:.5,1 1:0,0 0:1,1\n0 0\n1 1 2/7\n1 1 2\n")) == READ


def test_an_alphabet_gives_the_order(write):
    sample = load_sample(write(ABBADINGO), alphabet=["2", "1", "0"])
    assert sample.alphabet == ("2", "1", "0")
    assert sample.words == ((2, 1, 2), (), (0,), (0,))
    sample = load_sample(write("+ on off\n- off\n"), alphabet=["on", "off", "reset"])
    assert sample == Sample(((0, 1), (1,)), (True, False), ("on", "off", "reset"))


def test_toolbox(write):
    text = "# of words\n\n+\n  - a  b\n\t+ b +\n+ # a\n? a c\n   # the end\n"
    sample = load_sample(write(text, "sample.adl"))
    assert sample.alphabet == ("#", "+", "a", "b")  # the unlabelled word is left out
    assert sample.words == ((), (2, 3), (3, 1), (0, 2))
    assert sample.labels == (True, False, True, True)


def test_the_order_of_lines_does_not_order_the_symbols(write):
    lines = ["+ b a", "- c", "+ a a"]
    assert load_sample(write("\n".join(lines))).alphabet == load_sample(write("\n".join(lines[::-1]))).alphabet
    assert load_sample(write("+ 10 9\n- 2\n")).alphabet == ("2", "9", "10")


def test_unlabelled_words_are_left_out(write):
    assert load_sample(write("3 2\n-1 1 0\n1 1 1\n-1 0\n")) == Sample(((1,),), (True,), ("0", "1"))
    for text in ("1 2\n-1 1 0\n", "? a b\n"):
        with pytest.raises(ValueError, match="no word has a label"):
            load_sample(write(text))


def test_gzip(write):
    packed = gzip.compress(ABBADINGO.encode())
    assert load_sample(write(packed, "sample.a.gz")) == READ
    assert load_sample(write(packed, "sample.a")) == READ  # by content, not by name
    with pytest.raises(ValueError, match=r"sample.a.gz: the gzip file is cut off"):
        load_sample(write(packed[:-12], "sample.a.gz"))
    damaged = packed[:14] + bytes([packed[14] ^ 0xFF]) + packed[15:]
    with pytest.raises(ValueError, match=r"sample.a.gz: (cannot be read|the gzip file is cut off)"):
        load_sample(write(damaged, "sample.a.gz"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no word in the file"),
        ("# nothing\n\n", "no word in the file"),
        ("4\n1 0\n", r'line 1: expected "N K"'),
        ("digraph G {\n", r"line 1: expected"),
        ("2 0\n1 0\n", r'line 1: expected "N K"'),
        ("2 2\n1 1 0\n", "line 1 announces 2 words, but 1 follow"),
        ("1 2\n1 1 0\n1 1 1\n", "line 1 announces 1 words, but 2 follow"),
        ("2 2\n1 1 0\n2 1 0\n", r'line 3: expected "label length symbols…".*found \'2 1 0\''),
        ("2 2\n1 1 0\n1 x 0\n", r"line 3: expected"),
        ("2 2\n1 1 0\n\n1\n", r"line 4: expected"),
        ("2 2\n1 2 0\n1 1 0\n", "line 2: the length is 2, but there are 1 symbols"),
        ("2 2\n1 1 0\n1 2 0 2\n", r"line 3: the symbol '2', but the symbols are 0 … 1 \(line 1\)"),
        ("1 2\n1 1 -1\n", "line 2: the symbol '-1'"),
        ("+ a\n-b a\n", r'line 2: expected "\+ symbols…" or "- symbols…", found \'-b a\''),
        ("+ a\na b\n", "line 2: expected"),
        ("+\n", "no word has a symbol"),
        (b"\xff\xfe\x00", "not UTF-8 text"),
    ],
)
def test_damaged_files_name_the_line(write, text, message):
    path = write(text)
    with pytest.raises(ValueError, match=message) as error:
        load_sample(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("symbols", ["100000000", "9" * 5000])
def test_a_header_that_promises_too_much_is_not_believed(write, symbols):
    path = write(f"1 {symbols}\n1 1 0\n")
    tracemalloc.start()
    with pytest.raises(
        ValueError, match=r"line 1( announces 100000000 symbols, but at most 100000 are read|: expected)"
    ):
        load_sample(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6


def test_no_file_and_foreign_symbols(write, tmp_path):
    with pytest.raises(ValueError, match="There is no sample file"):
        load_sample(tmp_path / "missing.a")
    with pytest.raises(ValueError, match="cannot be read"):
        load_sample(tmp_path)
    with pytest.raises(ValueError, match="line 2: the symbol 'c' is not in the alphabet"):
        load_sample(write("+ a b\n- c\n"), alphabet="ab")
    with pytest.raises(ValueError, match="alphabet must order exactly these"):
        load_sample(write(ABBADINGO), alphabet="ab")


def test_the_public_files(data):
    """Sizes as their headers and sources say."""
    abbadingo = load_sample(data / "samples" / "abbadingo" / "problemA_train.a")
    assert (len(abbadingo.words), abbadingo.alphabet) == (4456, ("0", "1"))
    assert abbadingo.words[0] == (0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0)
    assert abbadingo.labels[:3] == (True, False, True)
    stamina = load_sample(data / "samples" / "stamina" / "1_training.dat")
    assert (len(stamina.words), len(set(stamina.words))) == (10244, 2051)
    assert len(load_sample(data / "samples" / "stamina" / "59_training.dat").alphabet) == 10
    toolbox = data / "models" / "stamina_toolbox"
    example = load_sample(toolbox / "unit__ref-sample.adl")
    assert "hello" in example.alphabet
    with pytest.raises(ValueError, match=r'expected "N K"|line \d+: expected'):
        load_sample(toolbox / "unit__ref-automaton.adl")  # an automaton, not a sample


def test_a_sample_is_a_value():
    sample = Sample.of([np.array([0, 1]), [], (1,)], np.array([True, False, True]))
    assert sample == Sample(((0, 1), (), (1,)), (True, False, True), ("0", "1"))
    assert hash(sample) == hash(pickle.loads(pickle.dumps(sample)))
    assert type(sample.words[0][0]) is int
    assert type(sample.labels[0]) is bool
    with pytest.raises(AttributeError):
        sample.words = ()


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.lists(st.integers(0, 11), max_size=6).map(tuple), st.booleans()), min_size=1, max_size=12
    )
)
def test_what_is_written_is_read(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("samples") / "s"
    words, labels = zip(*rows)
    expected = Sample(words, labels, tuple(map(str, range(12))))
    lines = [" ".join(map(str, [int(label), len(word), *word])) for word, label in rows]
    path.write_text("\n".join([f"{len(rows)} 12", *lines]))
    assert load_sample(path) == expected
    path.write_text("\n".join(" ".join(["-+"[label], *map(str, word)]) for word, label in rows))
    assert load_sample(path, alphabet=expected.alphabet) == expected
