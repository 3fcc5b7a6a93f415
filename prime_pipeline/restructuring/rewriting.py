"""From a section to its outcome: protect, route, ask, judge, repair, patch; and raw where nothing faithful comes of it.

How a model is reached and what its answers cost is known in ``llm``, what is faithful is known to the judge.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from prime_pipeline.errors import (
    BudgetSpent,
    EndpointUnavailable,
    EndpointUnusable,
    LanguageModelError,
    RequestRefused,
)
from prime_pipeline.llm.cached import Account, CachedChat
from prime_pipeline.llm.chat import ChatRequest
from prime_pipeline.llm.reply_cache import ReplyCache
from prime_pipeline.records import Document, Finding, OutcomeKind, Section, SectionOutcome
from prime_pipeline.restructuring.judge import Judge
from prime_pipeline.restructuring.prompts import Prompt
from prime_pipeline.restructuring.router import RouterOptions, route
from prime_pipeline.restructuring.verdicts import RememberingJudge
from prime_pipeline.text.protected import PLACEHOLDER_LINE, Protected, protect

_DEFERRALS: dict[type[LanguageModelError], str] = {
    BudgetSpent: "budget_spent",
    EndpointUnavailable: "endpoint_unavailable",
    EndpointUnusable: "endpoint_unusable",
}
_TOO_LONG = frozenset({"truncated", "context_length"})
_EXPECTED_LENGTH = 0.8  # of a text; PRIME (section 3.2) wants less than all and saves less than a third
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n\s*")


@dataclass(frozen=True, slots=True)
class RewritingOptions:
    """How a model is asked for rewrites.

    Attributes:
        base_url: The endpoint, part of every cache key.
        model: As the endpoint names it.
        temperature: 0 for the most likely answer.
        max_section_tokens: Longer bodies are asked for in parts. What a model can read is one limit, what it rewrites
            without skipping is a lower one.
        room_tokens: What an answer may be longer than one and a half times its text; models that reason aloud need
            thousands.
        repair: Whether a refused rewrite gets a second attempt.
        router: What is not asked for at all.
    """

    base_url: str
    model: str
    temperature: float = 0.0
    max_section_tokens: int = 4000
    room_tokens: int = 256
    repair: bool = True
    router: RouterOptions = field(default_factory=RouterOptions)


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """A request, and the part of a section that it is about.

    Attributes:
        chat: What would be sent.
        text: What would be rewritten, with placeholders.
    """

    chat: ChatRequest
    text: str

    def prompt_tokens(self, count_tokens: Callable[[str], int]) -> int:
        """Tokens that the model reads."""
        return count_tokens(self.chat.system) + count_tokens(self.chat.user)

    def completion_tokens(self, count_tokens: Callable[[str], int]) -> int:
        """Tokens that it is expected to generate."""
        return round(_EXPECTED_LENGTH * count_tokens(self.text))


def rough_tokens(text: str) -> int:
    """About as many tokens as models make of a text, rather more: three and a half ASCII characters each, others one.

    It depends on no tokenizer, since what is counted for an answer's room becomes part of the cache's keys.
    """
    n_other = 0 if text.isascii() else sum(not character.isascii() for character in text)
    return math.ceil((len(text) - n_other) / 3.5) + n_other


class Rewriter:
    """Rewrites sections. Safe for several threads, as far as the judge is.

    Args:
        chat: Answers, from the cache or the endpoint.
        judge: What a rewrite must pass.
        verdicts: Where the judge's verdicts are kept.
        prompt: What the model is told.
        options: How it is asked.
        count_tokens: Counts the tokens of a text; what it says becomes part of the cache's keys.
    """

    def __init__(
        self,
        chat: CachedChat,
        judge: Judge,
        verdicts: ReplyCache,
        prompt: Prompt,
        options: RewritingOptions,
        count_tokens: Callable[[str], int],
    ) -> None:
        self._chat = chat
        self._judge = RememberingJudge(judge, verdicts)
        self._prompt = prompt
        self._options = options
        self._count_tokens = count_tokens

    @property
    def model(self) -> str:
        """As the endpoint names it."""
        return self._options.model

    def planned(self, document: Document, section: Section) -> list[PlannedRequest]:
        """The requests that a section takes if all goes well; none for one that stays raw without being asked for."""
        raw = protect(section.body)
        if route(section, raw, self._options.router):
            return []
        place = _Task(document, section, raw).place
        return [
            PlannedRequest(self._request(self._prompt.user(*place, part), self._count_tokens(part)), part)
            for part in self._parts(raw.text)
            if not _is_bare(part)
        ]

    def rewrite(self, document: Document, section: Section) -> SectionOutcome:
        """What becomes of a section; failures of the endpoint are outcomes, faults of this program are raised."""
        raw = protect(section.body)
        routed = route(section, raw, self._options.router)
        if routed:
            return SectionOutcome(section.ordinal, "routed", findings=(routed,))
        account = Account(document.doc_id)
        try:
            outcome = self._judged(_Task(document, section, raw), account)
        except RequestRefused as refusal:
            # A request that is merely called bad may be the fault of a server that is set up wrongly for now.
            kind: OutcomeKind = "deferred" if refusal.code == "bad_request" else "raw"
            finding = Finding(refusal.code, refusal.reason)
            outcome = SectionOutcome(section.ordinal, kind, findings=(finding,))
        except tuple(_DEFERRALS) as error:
            finding = Finding(_DEFERRALS[type(error)], str(error))
            outcome = SectionOutcome(section.ordinal, "deferred", findings=(finding,))
        return replace(outcome, spending=account.spending)

    def _judged(self, task: _Task, account: Account) -> SectionOutcome:
        first = self._attempt(task, self._rewritten(task, account))
        if not first.findings:
            return task.outcome(first, "accepted")
        second = self._repaired(task, first, account)
        if second and not second.findings:
            return task.outcome(second, "repaired", first.findings)
        return self._patched(task, first, second)

    def _attempt(self, task: _Task, text: str) -> _Attempt:
        if text.split() == task.raw.text.split():
            return _Attempt(text, (), is_same=True)
        findings = self._judge.findings(task.raw, text, task.context)
        if findings and all(
            finding.code == "echo" for finding in findings
        ):  # no fault, and no rewrite either
            return _Attempt(text, (), is_same=True)
        return _Attempt(text, findings)

    def _repaired(self, task: _Task, first: _Attempt, account: Account) -> _Attempt | None:
        """The second attempt; None if there is none. A text that was asked for in parts would be too long for it."""
        n_tokens = self._count_tokens(task.raw.text)
        if not self._options.repair or n_tokens > self._options.max_section_tokens:
            return None
        user = self._prompt.repair(*task.place, task.raw.text, first.text, first.findings)
        try:
            return self._attempt(task, self._asked(self._request(user, n_tokens), account))
        except RequestRefused:
            return None

    def _patched(self, task: _Task, first: _Attempt, second: _Attempt | None) -> SectionOutcome:
        """The better of two refused attempts, patched if that heals it; else raw with what the last one failed by."""
        last = second or first
        better = min((last, first), key=lambda attempt: len(attempt.findings))
        patch = self._judge.patch(task.raw, better.text, better.findings, task.context)
        if patch is None:
            refused = task.raw.restore(last.text)
            return SectionOutcome(task.section.ordinal, "raw", findings=last.findings, refused=refused)
        patched = _Attempt(patch.text, better.findings)
        return replace(task.outcome(patched, "patched", better.findings), appended=patch.appended)

    def _rewritten(self, task: _Task, account: Account) -> str:
        return "\n\n".join(self._part(task, part, account) for part in self._parts(task.raw.text))

    def _parts(self, text: str) -> list[str]:
        """The text, or if it is too long for one answer, its halves, and so on down to single paragraphs."""
        halves = _halves(text)
        if halves is None or self._count_tokens(text) <= self._options.max_section_tokens:
            return [text]
        return [part for half in halves for part in self._parts(half)]

    def _part(self, task: _Task, text: str, account: Account) -> str:
        """A rewrite of the text in one answer, in one with twice the room, or in two halves by the same rules.

        Raises:
            RequestRefused: There is no answer, and not because of the length, or not even for a single paragraph.
        """
        if _is_bare(text):
            return text
        user = self._prompt.user(*task.place, text)
        try:
            return self._with_more_room(user, self._count_tokens(text), account)
        except RequestRefused as refusal:
            halves = _halves(text)
            if halves is None or refusal.code not in _TOO_LONG:
                raise
        return "\n\n".join(self._part(task, half, account) for half in halves)

    def _with_more_room(self, user: str, n_tokens: int, account: Account) -> str:
        try:
            return self._asked(self._request(user, n_tokens), account)
        except RequestRefused as refusal:
            if refusal.code != "truncated":
                raise
        return self._asked(self._request(user, n_tokens, times=2), account)

    def _asked(self, request: ChatRequest, account: Account) -> str:
        return self._chat.ask(request, account).text

    def _request(self, user: str, n_tokens: int, times: int = 1) -> ChatRequest:
        return ChatRequest(
            base_url=self._options.base_url,
            model=self._options.model,
            system=self._prompt.system,
            user=user,
            prompt_version=self._prompt.version,
            max_tokens=times * (math.ceil(1.5 * n_tokens) + self._options.room_tokens),
            temperature=self._options.temperature,
        )


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A rewrite with what speaks against it."""

    text: str
    findings: tuple[Finding, ...]
    is_same: bool = False


@dataclass(frozen=True, slots=True)
class _Task:
    """A section on its way."""

    document: Document
    section: Section
    raw: Protected

    @property
    def place(self) -> tuple[str, tuple[str, ...]]:
        """What a prompt says about where the section stands; never a title made of a file name."""
        return self.document.own_title, self.section.heading_path

    @property
    def context(self) -> str:
        """The same for the judge."""
        title, headings = self.place
        return "\n".join((title, *headings))

    def outcome(
        self,
        attempt: _Attempt,
        kind: Literal["accepted", "repaired", "patched"],
        findings: tuple[Finding, ...] = (),
    ) -> SectionOutcome:
        """An attempt that stands."""
        if attempt.is_same:
            return SectionOutcome(self.section.ordinal, "unchanged")
        rewritten = self.raw.restore(attempt.text).strip()
        return SectionOutcome(self.section.ordinal, kind, rewritten, findings)


def _is_bare(text: str) -> bool:
    """Whether there is nothing to rewrite but placeholders; a model may answer such a text with nothing."""
    return all(not line.strip() or PLACEHOLDER_LINE.fullmatch(line) for line in text.split("\n"))


def _halves(text: str) -> tuple[str, str] | None:
    """The text cut at the paragraph end nearest to its middle (the first of two); None for a single paragraph."""
    cuts = [found.span() for found in _PARAGRAPH_END.finditer(text.strip())]
    if not cuts:
        return None
    start, end = min(cuts, key=lambda cut: abs(cut[0] + cut[1] - len(text)))
    return text.strip()[:start], text.strip()[end:]
