"""What is not worth asking a model for: text that rewriting is known to harm, or that holds no prose to rewrite.

PRIME (section 5.4) loses evidence in multi-step procedures and contradicts the source in formal and mathematical text,
where conditions and quantifiers are flattened. Blocks of code, tables and display math are protected anyway; where they
prevail, the prose around them only points at them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from prime_pipeline.records import Finding, Section
from prime_pipeline.text.protected import PLACEHOLDER_LINE, BlockKind, Protected, inline_spans
from prime_pipeline.text.sentences import sentences
from prime_pipeline.text.words import cjk_share

ROUTER_VERSION = 1

_ITEM = re.compile(
    r"^[ \t]*(?:[-*+•]|(?P<number>\(?(?:\d{1,2}|[a-z])[.)]))[ \t]+(?P<text>\S.*)$", re.MULTILINE
)
_STEP = re.compile(r"\bstep[ \t]+\d", re.IGNORECASE)
_NO_STEP = re.compile(
    r"(?:we|our|the|a|an|this|it|what|how|why|which|who|is|are|can|could|do|does|should|would|will)\b",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"(?:add|apply|build|call|change|check|choose|click|clone|configure|connect|copy|create|define|delete|deploy|download"
    r"|edit|enable|ensure|enter|execute|export|find|go|import|initiali[sz]e|insert|install|launch|load|log|make|move|open"
    r"|paste|press|pull|push|put|remove|rename|repeat|replace|restart|run|save|select|set|start|stop|switch|test|turn"
    r"|type|update|upgrade|use|verify|wait|write)\b",
    re.IGNORECASE,
)
_SEQUENCE = re.compile(
    r"^(?:first(?:ly)?|second(?:ly)?|third(?:ly)?|then|next|after(?: that|wards)|finally|lastly)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:if|iff|unless|whenever|otherwise|provided that|for (?:all|every|each|any)|there (?:is|are|exists?)(?: \w+)? such"
    r"|such that|if and only if|suffices|must not|shall)\b",
    re.IGNORECASE,
)
_FORMAL = re.compile(
    r"(?:\A|\n[ \t>]*\n)[ \t>]*[*_]{0,3}(?:T(?i:heorem)|L(?i:emma)|C(?i:orollary)|P(?i:roposition|roof)|D(?i:efinition))"
    r"(?:[ \t]+\d[\d.]*|[ \t]*[.:(*_])",
)
_SYMBOL = re.compile(r"[∀∃∈∉⊂⊆⊢⊨∧∨¬⇒⇔→↦≤≥≠≈∑∏∫∂∇∞√×±·∘⊕⊗α-ωΑ-Ω]|\b(?:INLINE|DISPLAY)FORM\d+")
_LINK = re.compile(r"!?\[[^\[\]\n]*\]\([^()\n]*\)|<?https?://\S+")
_CHANGES = re.compile(
    r"\b(?:change[ -]?log|changes|release notes|release history|what's new)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class RouterOptions:
    """From where on a section stays raw. Shares are between 0 and 1.

    Attributes:
        min_words: Shorter prose saves nothing that the call would not cost.
        max_block_share: Of characters in blocks of one kind (code, tables, display math): the section is about them.
        max_inline_math_share: Of words that are formulas: prose of a paper that uses symbols stays below, proofs and
            derivations do not.
        max_conditional_share: Of sentences with a condition or quantifier; ordinary prose has below a fifth.
        min_steps: So many steps make a procedure; two may be an aside.
        max_step_share: Of words within steps; below, the procedure is only part of an argument.
        max_list_share: Of words within list items of a few words each, or within links.
        max_item_words: Mean length up to which items are an enumeration, not sentences.
        min_letter_share: Of characters (blanks aside) that are letters; prose has above nine tenths.
    """

    min_words: int = 40
    max_block_share: float = 0.6
    max_inline_math_share: float = 0.15
    max_conditional_share: float = 0.4
    min_steps: int = 3
    max_step_share: float = 0.4
    max_list_share: float = 0.6
    max_item_words: float = 10.0
    min_letter_share: float = 0.7


@dataclass(frozen=True, slots=True)
class _Features:
    """What the rules look at: the prose is the body without placeholders."""

    heading: str
    is_captions: bool
    prose: str
    n_words: int
    n_characters: int
    sentences: tuple[str, ...]
    items: tuple[re.Match[str], ...]
    block_characters: dict[BlockKind, int]

    def block_share(self, kind: BlockKind) -> float:
        return self.block_characters.get(kind, 0) / max(1, self.n_characters)


def route(section: Section, body: Protected, options: RouterOptions) -> Finding | None:
    """Why a section stays raw; None if it may be rewritten.

    Args:
        section: For its kind and heading.
        body: Its protected body.
        options: Thresholds.
    """
    features = _features(section, body)
    for code, rule in _RULES.items():
        detail = rule(features, options)
        if detail:
            return Finding(code, detail)
    return None


def _features(section: Section, body: Protected) -> _Features:
    prose = "\n".join(line for line in body.text.split("\n") if not PLACEHOLDER_LINE.fullmatch(line))
    block_characters: dict[BlockKind, int] = {}
    for block in body.blocks:
        block_characters[block.kind] = block_characters.get(block.kind, 0) + len(block.text)
    return _Features(
        heading=section.heading,
        is_captions=section.kind == "captions",
        prose=prose,
        n_words=_n_words(prose),
        n_characters=len(prose) + sum(block_characters.values()),
        sentences=tuple(sentences(prose)),
        items=tuple(_ITEM.finditer(prose)),
        block_characters=block_characters,
    )


def _n_words(text: str) -> int:
    """Words; two characters count as one where words are not set apart (Chinese, Japanese)."""
    n_letters = sum(map(str.isalpha, text)) if not text.isascii() else 0
    return max(len(text.split()), round(cjk_share(text) * n_letters / 2))


def _captions(features: _Features, options: RouterOptions) -> str:
    del options
    return "captions of figures and tables stay as they are" if features.is_captions else ""


def _prevailing(kind: BlockKind, name: str) -> _Rule:
    def rule(features: _Features, options: RouterOptions) -> str:
        share = features.block_share(kind)
        return f"{share:.0%} of the text is {name}" if share > options.max_block_share else ""

    return rule


def _mathematics(features: _Features, options: RouterOptions) -> str:
    formal = _FORMAL.search(features.prose)
    if formal:
        return f"formal statement: {formal[0].strip()}"
    shares = _prevailing("math", "display math")(features, options)
    formulas = [span for span in inline_spans(features.prose) if not span.startswith("`")]
    n_formulas = sum(len(span.split()) for span in formulas) + len(_SYMBOL.findall(features.prose))
    share = n_formulas / max(1, features.n_words)
    return shares or (
        f"{share:.0%} of the words are formulas" if share > options.max_inline_math_share else ""
    )


def _too_short(features: _Features, options: RouterOptions) -> str:
    is_short = features.n_words < options.min_words
    return f"{features.n_words} words, fewer than {options.min_words}" if is_short else ""


def _procedure(features: _Features, options: RouterOptions) -> str:
    """Items that are numbered or imperative, or sentences that begin with "then"; claims and questions are no steps."""
    items = [
        item["text"]
        for item in features.items
        if _IMPERATIVE.match(item["text"]) or (item["number"] and not _NO_STEP.match(item["text"]))
    ]
    told = [s for s in features.sentences if _SEQUENCE.match(s) or _STEP.search(s)]
    steps = items if len(items) >= len(told) else told
    share = sum(map(_n_words, steps)) / max(1, features.n_words)
    enough = len(steps) >= options.min_steps and share > options.max_step_share
    return f"{len(steps)} steps hold {share:.0%} of the words" if enough else ""


def _conditional(features: _Features, options: RouterOptions) -> str:
    n_conditional = sum(bool(_CONDITION.search(sentence)) for sentence in features.sentences)
    share = n_conditional / max(1, len(features.sentences))
    enough = n_conditional > 2 and share > options.max_conditional_share
    return (
        f"{n_conditional} of {len(features.sentences)} sentences are conditional or quantified"
        if enough
        else ""
    )


def _list(features: _Features, options: RouterOptions) -> str:
    n_listed = sum(_n_words(item["text"]) for item in features.items)
    share = n_listed / max(1, features.n_words)
    is_short = n_listed / max(1, len(features.items)) <= options.max_item_words
    links = sum(len(found[0]) for found in _LINK.finditer(features.prose)) / max(1, len(features.prose))
    if share > options.max_list_share and (is_short or _CHANGES.search(features.heading)):
        return f"{len(features.items)} list items hold {share:.0%} of the words"
    return f"{links:.0%} of the text is links" if links > options.max_list_share else ""


def _not_prose(features: _Features, options: RouterOptions) -> str:
    dense = "".join(features.prose.split())
    share = sum(map(str.isalpha, dense)) / max(1, len(dense))
    return f"{share:.0%} of the characters are letters" if share < options.min_letter_share else ""


_Rule = Callable[[_Features, RouterOptions], str]
"""The reason for which a section stays raw; empty for none."""

_RULES: dict[str, _Rule] = {
    "captions": _captions,
    "code": _prevailing("code", "code"),
    "table": _prevailing("table", "tables"),
    "mathematics": _mathematics,
    "too_short": _too_short,
    "procedure": _procedure,
    "conditional": _conditional,
    "list": _list,
    "not_prose": _not_prose,
}
"""By code, in the order in which they are asked."""
