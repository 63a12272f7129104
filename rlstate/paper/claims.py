"""The paper's claims, each judged *reproduced*, *partly* or *not* by a rule that was written down before the runs.

All checks of a claim hold: reproduced. Some: partly. None: not. Runs that a check needs are absent, unfinished or of two
protocols: missing, whatever the others say. A claim is stated in our words, and where the paper's are vague ("near chance",
"substantially") a number was chosen for them (`rlstate.paper.rules`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rlstate.paper import claims_credit, claims_heldout, claims_learning, claims_levers, claims_structure
from rlstate.paper.rules import Check, Claim, Runs
from rlstate.results import Row

Verdict = Literal["reproduced", "partly", "not", "missing"]

CLAIMS: tuple[Claim, ...] = (
    *claims_learning.CLAIMS,
    *claims_levers.AUXILIARIES,
    *claims_structure.SCALING,
    *claims_heldout.IN_SAMPLE,
    *claims_heldout.HELDOUT,
    *claims_structure.MINED,
    *claims_structure.USE,
    *claims_credit.CLAIMS,
    *claims_levers.TABLE_4,
)
"""In the paper's order."""


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict.

    Attributes:
        evidence: every check with its figures, those that do not hold marked as such.
        missing: what is missing, then the commands that train it; empty unless the verdict is "missing".
        exact: it is computed exactly, of the automata alone, and needs no run.
        checks: the evidence, a piece each.
    """

    key: str
    section: str
    statement: str
    rule: str
    verdict: Verdict
    evidence: str
    missing: tuple[str, ...]
    exact: bool
    checks: tuple[Check, ...]


def judge(rows: Sequence[Row]) -> list[Judged]:
    """Every claim, in the paper's order."""
    runs = Runs(tuple(rows))
    return [judged(claim, runs) for claim in CLAIMS]


def judged(claim: Claim, runs: Runs) -> Judged:
    checks = tuple(test.check(runs) for test in claim.tests)
    missing = tuple(dict.fromkeys(check.evidence for check in checks if check.held is None))
    if missing:
        missing += tuple(f"python -m rlstate.train +experiment={name}" for name in claim.experiments)
    return Judged(
        claim.key, claim.section, claim.statement, claim.rule, _verdict(checks), _evidence(checks), missing,
        not claim.experiments, checks,
    )  # fmt: skip


def _verdict(checks: Sequence[Check]) -> Verdict:
    held = [check.held for check in checks]
    if None in held:
        return "missing"
    return "reproduced" if all(held) else "partly" if any(held) else "not"


def _evidence(checks: Sequence[Check]) -> str:
    marks = {True: "✓", False: "✗", None: "?"}
    return "; ".join(f"{marks[check.held]} {check.name}: {check.evidence}" for check in checks)
