"""A hidden automaton under partial control: the environment, its exact oracle, and what its structure foretells.

Numpy and Gymnasium only; knows no policy.
"""

from rlstate.control.credit import (
    Contraction,
    Features,
    contraction,
    features,
    score,
    state_influence,
    transition_operator,
)
from rlstate.control.draws import Draws, Stream, draw, generator
from rlstate.control.emissions import BLANK, EmissionChannel, ObservationLayout
from rlstate.control.env import PartialControlDFAEnv, PartialControlDFAVectorEnv, check_setting
from rlstate.control.oracle import Oracle, is_diagnostic
from rlstate.control.registration import register
from rlstate.control.task import Task

__all__ = [
    "BLANK",
    "Contraction",
    "Draws",
    "EmissionChannel",
    "Features",
    "ObservationLayout",
    "Oracle",
    "PartialControlDFAEnv",
    "PartialControlDFAVectorEnv",
    "Stream",
    "Task",
    "check_setting",
    "contraction",
    "draw",
    "features",
    "generator",
    "is_diagnostic",
    "register",
    "score",
    "state_influence",
    "transition_operator",
]
