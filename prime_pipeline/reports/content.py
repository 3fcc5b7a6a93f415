"""What a report says: plain records of results. How they are measured, worded or drawn is decided elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Final, Literal

from prime_pipeline.errors import ReportError

Level = Literal["document", "section", "answer"]
Panel = Literal["A", "B", "C", "D"]

EXTRACTIVE: Final = "extractive"
"""The restructurer that works by rules, without a language model; what it makes is never called SR."""
REPRESENTATIONS: Final = (
    "chunk-256",
    "bge-m3-chunk-256",
    "summary-augmented",
    "raptor-lite",
    "structure-chunks",
    "full-text",
    "prime-offline",
    "prime-full-text",
    "sr-full-text",
    "prime-full",
    "default",
)
"""Index representations in the order of the tables; others follow in alphabetical order."""
PIPELINES: Final = (
    "bm25",
    "dense",
    "hybrid",
    "hybrid+rerank",
    "hybrid-sections",
    "hybrid-sections+rerank",
)
"""Retrieval pipelines in the order of the tables; others follow in alphabetical order."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A number with its interval.

    Attributes:
        value: The estimate.
        low: Lower bound of the 95 % interval; None, together with ``high``, where there is none.
        high: Upper bound.
        n: What the estimate is over: queries, documents, spans; None where that has no meaning.
        reason: Why there is no interval.

    Raises:
        ReportError: One bound without the other, or bounds the wrong way round.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ReportError(f"the interval of {self.value} has one bound only: give both or neither")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ReportError(
                f"the interval of {self.value} runs from {self.low} down to {self.high}: swap them"
            )

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of zero; False without an interval."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one system over one set of queries.

    Attributes:
        representation: What is indexed, one of :data:`REPRESENTATIONS` or a name of your own.
        pipeline: How it is searched, one of :data:`PIPELINES` or a name of your own.
        measure: Such as ``ndcg@5``.
        result: None where it could not be measured.
        reason: Why it could not.
        level: What the ranking is of.
        dataset: Where it differs from the report's; a BRIGHT task is ``bright/<task>``, NFCorpus is ``nfcorpus``.
        question_type: Empty for all queries.
        restructurer: :data:`EXTRACTIVE`, the label of a language model, or empty where the text is raw.
        reranker: Label of the second stage's model; empty without one.
        per_query: Query id to value, if two reports are to be compared query by query.
    """

    representation: str
    pipeline: str
    measure: str
    result: Measured | None
    reason: str = ""
    level: Level = "document"
    dataset: str = ""
    question_type: str = ""
    restructurer: str = ""
    reranker: str = ""
    per_query: Mapping[str, float] = field(default_factory=dict)

    @property
    def status(self) -> Literal["measured", "unavailable"]:
        """Whether there is a result."""
        return "unavailable" if self.result is None else "measured"

    @property
    def key(self) -> tuple[str, ...]:
        """What tells the cell from the others of a report."""
        return (*self.place, self.restructurer, self.reranker)

    @property
    def place(self) -> tuple[str, ...]:
        """The key without the models that made it."""
        return (
            self.dataset,
            self.level,
            self.question_type,
            self.representation,
            self.pipeline,
            self.measure,
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two representations over the same queries.

    Attributes:
        family: The declared family over which p-values are adjusted.
        left: The representation whose value counts positive.
        right: The one that it is compared with.
        difference: Left minus right.
        relative: The difference as a share of the right value; None where that is 0.
        p_value: Two-sided; None where there is no test.
        p_adjusted: By Holm's method over the family.
        minimum_detectable_effect: The difference that so many queries would show with 80 % power, in a test of its own
            and where the family leaves room for it, see :func:`~prime_pipeline.reports.claims.could_be_told_apart`.
        restructurer: As in :class:`Cell`; of the side that is restructured.
        n_clusters: What was resampled and had its signs flipped: documents that queries nest in, or the queries
            themselves; None if unknown.
        n_family: Comparisons of the family; None if unknown.
    """

    family: str
    measure: str
    pipeline: str
    left: str
    right: str
    difference: Measured
    relative: Measured | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    minimum_detectable_effect: float | None = None
    level: Level = "document"
    dataset: str = ""
    restructurer: str = ""
    reranker: str = ""
    n_clusters: int | None = None
    n_family: int | None = None


@dataclass(frozen=True, slots=True)
class Contrast:
    """One measure of the raw and of the restructured corpus: text density, or evidence localisation.

    Attributes:
        measure: A name of :mod:`~prime_pipeline.reports.published`, or one of your own.
        relative: The change as a share of the raw value, 0.1 being 10 % more; None where the raw value is 0.
        question_type: Which queries; empty for all.
        follows_paper: Whether it is measured as the PRIME paper did, so that its number may stand beside.
        n_clusters: As in :class:`Comparison`.
    """

    measure: str
    raw: Measured
    restructured: Measured
    relative: Measured | None = None
    question_type: str = ""
    follows_paper: bool = True
    n_clusters: int | None = None


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """What generated answers of one condition are worth.

    Attributes:
        condition: Such as ``raw-to-restructured``: the text that is searched, then the one that the generator reads.
        f1: Answer-F1.
        question_type: Empty for all questions.
        evidence_f1: Of the paragraphs that the generator was given to read; None where none are marked as gold.
    """

    condition: str
    f1: Measured
    question_type: str = ""
    evidence_f1: Measured | None = None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One dimension of the fidelity audit; the share is from 0 to 1.

    Panels: A evidence, B facts, C contradiction, D how well the router would have spared what was harmed.

    Attributes:
        n_clusters: Documents that the items nest in, or the items themselves where each stands for itself; None if
            unknown.
    """

    panel: Panel
    dimension: str
    share: Measured
    n_clusters: int | None = None


@dataclass(frozen=True, slots=True)
class SystemCost:
    """What one representation costs, and what a query over it does.

    Attributes:
        amounts: Counts by name, see :data:`~prime_pipeline.reports.wording.COSTS`.
        pipeline: Whose queries cost what is named ``query_``; empty where that does not depend on it.
        restructurer: As in :class:`Cell`.
        reranker: As in :class:`Cell`.
    """

    representation: str
    amounts: Mapping[str, float]
    pipeline: str = ""
    restructurer: str = ""
    reranker: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from the others of a report."""
        return (self.representation, self.restructurer, self.pipeline, self.reranker)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """After how many queries restructuring has cost less than reranking by a language model (PRIME, section 4.1)."""

    restructuring_tokens: float
    reranking_tokens_per_query: float

    @property
    def n_queries(self) -> float | None:
        """The break-even; None where reranking costs nothing."""
        return (
            self.restructuring_tokens / self.reranking_tokens_per_query
            if self.reranking_tokens_per_query
            else None
        )


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the corpus that can be measured before retrieval."""

    name: str
    result: Measured
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """What the corpus is like, and what that lets one expect; ``evidence`` are sentences."""

    regime: str
    recommended_mode: str
    evidence: tuple[str, ...] = ()
    properties: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportContent:
    """All that a report says.

    Attributes:
        title: For people.
        dataset: What the cells without a data set of their own were measured on.
        created: The time, as the caller words it; nothing here looks at a clock.
        n_documents: Documents of the corpus; None if unknown.
        known_item: Whether the queries were made from the documents that they ask for.
        clusters: Query id to the document that it was asked about, where queries nest in documents; else empty.
        restructurer: As in :class:`Cell`; what made the restructured text of the density, evidence, answer and audit rows.
        conventions: How the measures count, one sentence each.
        notes: What else a reader must know, one sentence each.
        commands: Id of a table to the command that fills it.
    """

    title: str
    dataset: str
    created: str
    n_documents: int | None = None
    known_item: bool = False
    clusters: Mapping[str, str] = field(default_factory=dict)
    restructurer: str = ""
    cells: tuple[Cell, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    density: tuple[Contrast, ...] = ()
    evidence: tuple[Contrast, ...] = ()
    answers: tuple[AnswerRow, ...] = ()
    audit: tuple[AuditRow, ...] = ()
    costs: tuple[SystemCost, ...] = ()
    break_even: BreakEven | None = None
    profile: Profile | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    conventions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    commands: Mapping[str, str] = field(default_factory=dict)

    def cells_of(self, dataset: str) -> tuple[Cell, ...]:
        """The cells measured on a data set."""
        return tuple(cell for cell in self.cells if (cell.dataset or self.dataset) == dataset)

    @property
    def restructurers(self) -> tuple[str, ...]:
        """What made restructured text anywhere in the report, in alphabetical order."""
        named = {self.restructurer}
        named |= {cell.restructurer for cell in self.cells}
        named |= {item.restructurer for item in self.comparisons} | {item.restructurer for item in self.costs}
        return tuple(sorted(named - {""}))


def check(content: ReportContent) -> None:
    """Refuse what no reader could make sense of.

    Raises:
        ReportError: A number is not finite, or two cells have one key; the message names the place.
    """
    seen = set()
    for cell in content.cells:
        key = (cell.dataset or content.dataset, *cell.key[1:])
        if key in seen:
            raise ReportError(f"the report holds {_cell_name(cell)} twice: give each its own name")
        seen.add(key)
    for name, number in _numbers(content, "report"):
        if not math.isfinite(number):
            raise ReportError(f"{name} is {number}: leave it out and say why instead")


def bare_numbers(content: ReportContent) -> list[str]:
    """Where numbers stand that have no interval and no word why: a report should hold none."""
    return [
        name
        for name, found in _parts(content, "report")
        if isinstance(found, Measured) and found.low is None and not found.reason
    ]


def _parts(value: object, name: str) -> Iterator[tuple[str, object]]:
    """Every record below a value, with the path that leads there."""
    if isinstance(value, tuple):
        for at, item in enumerate(value):
            yield from _parts(item, f"{name}[{at}]")
    elif is_dataclass(value):
        yield name, value
        for part in fields(value):
            yield from _parts(getattr(value, part.name), f"{name}.{part.name}")


def _numbers(value: object, name: str) -> Iterator[tuple[str, float]]:
    """Every float below a value, with the path that leads there."""
    if isinstance(value, float):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, f"{name}[{key!r}]")
    elif isinstance(value, tuple):
        for at, item in enumerate(value):
            yield from _numbers(item, f"{name}[{at}]")
    elif is_dataclass(value):
        name = f"{name} ({_cell_name(value)})" if isinstance(value, Cell) else name
        for part in fields(value):
            yield from _numbers(getattr(value, part.name), f"{name}.{part.name}")


def _cell_name(cell: Cell) -> str:
    return f"cell {', '.join(filter(None, cell.key))}"


def in_order(names: Iterable[str], known: tuple[str, ...]) -> list[str]:
    """Distinct names: the known ones in their order, then the others in alphabetical order."""
    places = {name: at for at, name in enumerate(known)}
    return sorted(set(names), key=lambda name: (places.get(name, len(known)), name))
