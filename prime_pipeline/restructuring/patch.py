"""Healing a rewrite that lost facts: the raw sentences that hold them are appended. It never hides an invention."""

from __future__ import annotations

from prime_pipeline.records import Finding
from prime_pipeline.restructuring.judge import Judge, Patch
from prime_pipeline.text.protected import Protected
from prime_pipeline.text.sentences import sentences


def patched(
    judge: Judge, raw: Protected, rewrite: str, findings: tuple[Finding, ...], context: str = ""
) -> Patch | None:
    """The rewrite and, as a last paragraph, the findings' sources in raw order, each once.

    Returns:
        None if a finding has no sources (something was invented, or the form is wrong), if the sources are all there
        already, or if the whole does not pass the judge, its bound of length included.
    """
    if not findings or not all(finding.sources for finding in findings):
        return None
    wanted = {source for finding in findings for source in finding.sources}
    missing = tuple(dict.fromkeys(s for s in sentences(raw.text) if s in wanted and s not in rewrite))
    if not missing:
        return None
    text = f"{rewrite.rstrip()}\n\n{' '.join(missing)}"
    return None if judge.findings(raw, text, context) else Patch(text, missing)
