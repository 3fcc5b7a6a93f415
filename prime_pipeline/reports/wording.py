"""How numbers and names are worded, the same in every table, figure and sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prime_pipeline.reports.content import EXTRACTIVE, Measured

Format = Callable[[float], str]

_MEASURES: Final = {
    "mrr": "MRR",
    "map": "MAP",
    "token-recall@5": "Token-R@5",
    "answer-f1": "Answer-F1",
    "evidence-f1": "Evidence-F1",
}
_REPRESENTATIONS: Final = {
    "prime-offline": "PRIME offline",
    "prime-full-text": "PRIME (FT)",
    "prime-full": "PRIME full",
    "raptor-lite": "RAPTOR-lite",
}
_RECOMMENDED: Final = {
    "metadata": 'metadata (PRIME offline, mode = "offline")',
    "full": 'restructured text and its metadata (PRIME full, mode = "full")',
    "full text": 'full text rather than metadata (retrieval.arms without "metadata_vector")',
    "none": "nothing yet; measure metadata and full text with queries of your own",
}
_UNITS: Final = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))

COSTS: Final = {
    "embedded_tokens_text": "embedded tokens, of the texts",
    "embedded_tokens_read": "embedded tokens, read by the encoder",
    "vectors": "vectors",
    "index_bytes": "index size",
    "llm_tokens": "language model tokens",
    "money": "money",
    "build_seconds": "build time, s",
    "query_ms": "query time, ms",
    "query_llm_tokens": "language model tokens a query",
    "query_read_tokens": "tokens of the sections read, a query",
}
"""The costs of a system, in the order of the table; those that begin with ``query_`` may depend on the pipeline."""


def number(value: float, decimals: int = 3) -> str:
    """A number with a true minus sign and grouped thousands.

    What would round to zero, and is not zero, keeps its first digit.
    """
    shown = f"{value:,.{decimals}f}"
    if value and not any(digit in "123456789" for digit in shown):
        shown = f"{value:.1g}"
    return shown.replace("-", "−")


def score(value: float) -> str:
    """A measure: three decimals, fewer beyond 10."""
    magnitude = abs(value)
    return number(value, 3 if magnitude < 10 else 1 if magnitude < 1000 else 0)


def fine(value: float) -> str:
    """Four decimals, for small values."""
    return number(value, 4)


def signed(value: float) -> str:
    """Four decimals and always a sign; zero has none."""
    return ("+" if value > 0 else "") + fine(value)


def percent(value: float) -> str:
    """A share: 0.632 is 63.2%."""
    return f"{number(100 * value, 1)}%"


def signed_percent(value: float) -> str:
    """A relative change: 0.222 is +22.2%."""
    return ("+" if value > 0 else "") + percent(value)


def points(value: float) -> str:
    """A difference of two shares, in percentage points."""
    return f"{'+' if value > 0 else ''}{number(100 * value, 1)} points"


def count(value: float) -> str:
    """A whole number, grouped."""
    return number(value, 0)


def plural(n: int, one: str, many: str = "") -> str:
    """A count with its noun."""
    return f"{count(n)} {one if n == 1 else many or one + 's'}"


def queries_about(n: int, n_clusters: int | None) -> str:
    """Queries, and the documents that they nest in, if they do."""
    about = "" if n_clusters is None or n_clusters == n else f" about {plural(n_clusters, 'document')}"
    return f"{plural(n, 'query', 'queries')}{about}"


def byte_size(size_bytes: float) -> str:
    """A size in the largest decimal unit that it fills: 1,200,000 bytes are 1.2 MB."""
    unit, size = next(((unit, size) for unit, size in _UNITS if abs(size_bytes) >= size), ("B", 1.0))
    return f"{number(size_bytes / size, 0 if unit == 'B' else 1)} {unit}"


def amount(cost: str, value: float) -> str:
    """A cost in the unit that its name implies; whole numbers without decimals."""
    if cost == "index_bytes":
        return byte_size(value)
    return count(value) if float(value).is_integer() else number(value, 2)


def ratio(value: float, base: float) -> str:
    """How much less or more than the base, in words."""
    if value == base:
        return "the same"
    if not value or not base:
        return "none" if not value else "base: none"
    times = base / value if value < base else value / base
    return f"{number(times, 1 if times >= 1.05 else 3)}× {'less' if value < base else 'more'}"


def p_value(value: float) -> str:
    """A p-value: three decimals, and never 0."""
    return "< 0.001" if value < 0.001 else number(value)


def interval(measured: Measured, form: Format) -> str:
    """The interval in brackets, or why there is none."""
    if measured.low is None or measured.high is None:
        return f"no interval: {measured.reason or 'not computed'}"
    return f"[{form(measured.low)}, {form(measured.high)}]"


def between(measured: Measured, form: Format) -> str:
    """The interval in a sentence."""
    if measured.low is None or measured.high is None:
        return interval(measured, form)
    return f"95% interval {form(measured.low)} to {form(measured.high)}"


def measure_label(measure: str) -> str:
    """A measure as the field writes it."""
    if measure.partition("@")[0] in {"ndcg", "p", "r"}:
        return measure.upper()
    return _MEASURES.get(measure, measure)


def representation_label(representation: str, restructurer: str = "") -> str:
    """A representation for people; text that no language model rewrote is never called SR."""
    if representation == "sr-full-text":
        name = "SR full-text" if restructurer not in {"", EXTRACTIVE} else "restructured full-text"
    else:
        name = _REPRESENTATIONS.get(representation, representation)
    return f"{name} ({restructurer})" if restructurer else name


def recommendation(mode: str) -> str:
    """What a corpus profile recommends to index, and the setting for it."""
    return _RECOMMENDED.get(mode, mode)


def pipeline_label(pipeline: str, reranker: str = "") -> str:
    """A pipeline for people, with the name of its second stage."""
    return pipeline.replace("+rerank", f" + {reranker or 'reranker'}").replace("+", " + ").replace("  ", " ")
