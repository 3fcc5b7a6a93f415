"""Following the corpus profile where the mode is ``auto``."""

from __future__ import annotations

from prime_pipeline.errors import EvaluationError
from prime_pipeline.refresh.mode import ModeDecision, read_decision, write_decision
from prime_pipeline.reporting.studies import corpus_profile
from prime_pipeline.workspace import Workspace


def decide_mode(workspace: Workspace) -> ModeDecision | None:
    """What the profile of the sealed corpus recommends, kept in the home for all that comes after; None without ``auto``.

    The profile looks at a sample that depends on the ids of documents alone, and is kept: while none of the sampled
    documents changes, neither does the decision, and nothing is computed. Full texts of the sample are embedded for it.
    Where queries are configured that cannot be read, the decision before stands.

    Raises:
        EmptyCorpus: Nothing is sealed.
    """
    if workspace.settings.mode != "auto":
        return None
    path = workspace.home.mode_decision
    try:
        profile = corpus_profile(workspace).findings.content.profile
    except EvaluationError:
        return read_decision(path)
    if profile is None:
        return read_decision(path)
    decision = ModeDecision.following(profile.regime, profile.recommended_mode, profile.evidence)
    if decision != read_decision(path):
        write_decision(path, decision)
    return decision
