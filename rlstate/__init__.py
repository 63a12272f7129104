"""rlstate: did this agent learn its task's latent state, or only a shortcut that earns reward?

A task is a hidden DFA under partial control. Importing this registers ``rlstate/PartialControlDFA-v0`` with Gymnasium.
"""

__version__ = "0.1.0"

from rlstate.control.registration import register as _register

_register()
