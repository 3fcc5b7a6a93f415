"""What commands that measure show: scores with their intervals, the corpus profile, answers, the report in short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prime_pipeline.console.parts import (
    counts_table,
    interval_text,
    measures_table,
    messages,
    printable,
    title_text,
)
from prime_pipeline.evaluation.run_files import RunScores
from prime_pipeline.evaluation.statistics import Interval
from prime_pipeline.records import Spending
from prime_pipeline.refresh.evaluation import EvaluationReport
from prime_pipeline.reports import wording
from prime_pipeline.reports.content import Comparison, Measured, Profile, ReportContent
from prime_pipeline.reports.summary import comparison_sentence, summary
from prime_pipeline.studies.answers import AnswerEstimate

_MEASURES = ("ndcg@5", "ndcg@10", "r@5", "mrr")


def scores_view(scores: RunScores) -> Group:
    """Runs of files: measures, comparisons with the first, and what is odd about them."""
    systems = {run.name: run.intervals for run in scores.runs}
    n_queries = scores.runs[0].evaluation.n_queries
    notes = [
        f"{run.name}: {n:,} queries {what}"
        for run in scores.runs
        for n, what in (
            (run.evaluation.n_missing, "are judged and have no result; they count as 0"),
            (run.evaluation.n_without_relevant, "have no relevant result in the judgements; they count as 0"),
            (run.evaluation.n_unjudged, "of the run are not judged; they are ignored"),
        )
        if n
    ]
    return Group(
        _runs_table(f"{n_queries:,} judged queries", systems),
        *([_run_comparisons(scores)] if scores.comparisons else []),
        *messages("note:", [*scores.warnings, *notes]),
    )


def _runs_table(title: str, runs: Mapping[str, Mapping[str, Interval]]) -> Table:
    """A row for each measure, as names of runs are long and measures may be many."""
    table = Table(title=title_text(title), title_justify="left")
    table.add_column("measure")
    for name in runs:
        table.add_column(Text(printable(name)), justify="right", overflow="fold", min_width=11)
    for measure in next(iter(runs.values())):
        intervals = (found[measure] for found in runs.values())
        cells = (interval_text(f"{i.value:.3f}", i.low, i.high, "{:.3f}".format) for i in intervals)
        table.add_row(wording.measure_label(measure), *cells)
    return table


def _run_comparisons(scores: RunScores) -> Table:
    table = Table(
        title=title_text(f"\nCompared with {printable(scores.runs[0].name)} by {scores.compared.upper()}"),
        title_justify="left",
    )
    for heading in ("run", "difference", "p, adjusted", "detectable"):
        table.add_column(heading, justify="left" if heading == "run" else "right")
    for pair, compared in scores.comparisons.items():
        effect = compared.minimum_detectable_effect
        table.add_row(
            Text(printable(pair[0])),
            interval_text(wording.signed(compared.difference), compared.low, compared.high, wording.signed),
            wording.p_value(scores.p_adjusted[pair]),
            "" if effect is None else wording.fine(effect),
        )
    return table


def evaluation_view(
    reports: Sequence[EvaluationReport],
    content: ReportContent,
    written: Sequence[Path],
    notes: Sequence[str] = (),
) -> Group:
    """What is served, by system and variant, and which differences can be told."""
    systems = {
        system
        if report.variant == "offline"
        else f"{system}, full ({report.restructuring})": measured.intervals
        for report in reports
        for system, measured in report.systems.items()
    }
    kind = ", known-item queries" if reports[0].known_item else ""
    title = f"{reports[0].n_queries:,} queries, {printable(reports[0].queries)}{kind}"
    return Group(
        measures_table(title, systems, _MEASURES),
        Text(""),
        *_sentences(content.comparisons),
        *messages("note:", notes),
        *messages("written:", [f"{len(written)} files in {written[0].parent}"] if written else [], "dim"),
    )


def _sentences(comparisons: Sequence[Comparison]) -> Iterator[RenderableType]:
    for found in comparisons:
        yield _bullet(str(comparison_sentence(found)))


def _bullet(sentence: str) -> Padding:
    return Padding(Text(f"• {printable(sentence)}"), (0, 0, 0, 1))


def profile_view(profile: Profile, notes: Sequence[str]) -> Group:
    """The regime, the evidence for it in words, and the properties."""
    head = {"Regime": profile.regime, "Recommended": wording.recommendation(profile.recommended_mode)}
    table = Table(title=title_text("\nProperties"), title_justify="left")
    for heading in ("property", "value", "n", "what it means"):
        table.add_column(heading, justify="right" if heading in {"value", "n"} else "left")
    for found in profile.properties:
        n = "" if found.result.n is None else f"{found.result.n:,}"
        table.add_row(
            Text(found.name), _measured(found.result, wording.score), n, Text(printable(found.meaning))
        )
    return Group(
        counts_table("Corpus profile", head),
        Text(""),
        *map(_bullet, profile.evidence),
        table,
        *messages("note:", notes, "dim"),
    )


def estimate_view(estimate: AnswerEstimate, currency: str | None) -> Table:
    """What answering would cost at most."""
    return counts_table(
        "Generating answers would take",
        {
            "questions": estimate.n_questions,
            "calls": f"{estimate.n_calls:,} ({estimate.n_questions - estimate.n_calls:,} are answered already, or alike)",
            **(
                {
                    "without a section to read": f"{estimate.n_unreadable:,}, not asked: see answers.max_context_tokens"
                }
                if estimate.n_unreadable
                else {}
            ),
            "tokens read": f"about {estimate.prompt_tokens:,}",
            "tokens generated": f"at most {estimate.completion_tokens:,}",
            "price": _price(estimate.cost, currency, "at most "),
        },
    )


def answers_view(
    content: ReportContent, spent: Spending, cost: float | None = None, currency: str | None = None
) -> Group:
    """Answer-F1 and Evidence-F1 by condition and type of question, comparisons, and what it cost."""
    table = Table(title=title_text("Generated answers"), title_justify="left")
    for heading in ("condition", "questions", "Answer-F1", "Evidence-F1", "n"):
        table.add_column(heading, justify="left" if heading in {"condition", "questions"} else "right")
    for row in content.answers:
        evidence = Text("") if row.evidence_f1 is None else _measured(row.evidence_f1, wording.fine)
        n = "" if row.f1.n is None else f"{row.f1.n:,}"
        table.add_row(
            row.condition, printable(row.question_type or "all"), _measured(row.f1, wording.fine), evidence, n
        )
    costs = {
        "calls": spent.calls,
        "from the cache": spent.cache_hits,
        "tokens": spent.prompt_tokens + spent.completion_tokens,
        "price": _price(cost, currency),
    }
    return Group(
        table,
        Text(""),
        *_sentences(content.comparisons),
        *messages("note:", content.notes, "dim"),
        counts_table("\nSpent now", costs),
    )


def _price(cost: float | None, currency: str | None, limit: str = "") -> str:
    return "unknown: set llm.prices" if cost is None else f"{limit}{cost:,.4f} {currency}"


def report_view(content: ReportContent, files: Sequence[Path]) -> Group:
    """The report's summary, and where it lies."""
    parts: list[RenderableType] = [Text(printable(content.title), style="bold")]
    for topic, sentences in _told(content).items():
        parts.append(Text(f"\n{topic}", style="bold"))
        parts += map(_bullet, sentences)
    return Group(*parts, Text(""), *messages("written:", [str(path) for path in files], "dim"))


def _told(content: ReportContent) -> Mapping[str, list[str]]:
    return {topic: [str(sentence) for sentence in found] for topic, found in summary(content).items()}


def _measured(measured: Measured, form: wording.Format) -> Text:
    return interval_text(form(measured.value), measured.low, measured.high, form)
