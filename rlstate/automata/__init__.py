"""Automata: exact finite machines and their languages. NumPy only; knows nothing of reinforcement learning."""

from rlstate.automata import structure, zoo
from rlstate.automata.dfa import DFA
from rlstate.automata.files import load, save
from rlstate.automata.regex import from_regex
from rlstate.automata.similarity import similarity

__all__ = ["DFA", "from_regex", "load", "save", "similarity", "structure", "zoo"]
