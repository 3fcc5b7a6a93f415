"""A judge that remembers: each rewrite is judged once, for every version of the gate."""

from __future__ import annotations

import json
from dataclasses import asdict

from prime_pipeline.llm.reply_cache import ReplyCache
from prime_pipeline.records import Finding
from prime_pipeline.restructuring.judge import Judge, Patch
from prime_pipeline.storage.fingerprint import text_fingerprint
from prime_pipeline.text.protected import Protected


class RememberingJudge:
    """A judge whose findings and patches are kept by (raw text, rewrite, context) and the judge's fingerprint.

    The raw text counts with its protected blocks: two sections may differ in nothing but these, and share a reply.

    Args:
        judge: Asked for what is not known yet.
        verdicts: Where they are kept.
    """

    def __init__(self, judge: Judge, verdicts: ReplyCache) -> None:
        self._judge = judge
        self._verdicts = verdicts

    @property
    def fingerprint(self) -> str:
        """The judge's own."""
        return self._judge.fingerprint

    def findings(self, raw: Protected, rewrite: str, context: str = "") -> tuple[Finding, ...]:
        """As the judge finds, now or earlier."""
        key = _key("findings", raw, rewrite, context)
        known = self._verdicts.verdict(key, self.fingerprint)
        if known is not None:
            return tuple(Finding(f["code"], f["detail"], tuple(f["sources"])) for f in json.loads(known))
        found = self._judge.findings(raw, rewrite, context)
        self._verdicts.keep_verdict(key, self.fingerprint, json.dumps([asdict(finding) for finding in found]))
        return found

    def patch(
        self, raw: Protected, rewrite: str, findings: tuple[Finding, ...], context: str = ""
    ) -> Patch | None:
        """As the judge patches, now or earlier; the findings are those of this very rewrite."""
        key = _key("patch", raw, rewrite, context)
        known = self._verdicts.verdict(key, self.fingerprint)
        if known is not None:
            kept = json.loads(known)
            return Patch(kept["text"], tuple(kept["appended"])) if kept else None
        patch = self._judge.patch(raw, rewrite, findings, context)
        self._verdicts.keep_verdict(key, self.fingerprint, json.dumps(asdict(patch) if patch else None))
        return patch


def _key(purpose: str, raw: Protected, rewrite: str, context: str) -> str:
    return text_fingerprint(purpose, raw.text, raw.restore(raw.text), rewrite, context)
