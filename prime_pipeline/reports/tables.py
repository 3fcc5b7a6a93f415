"""The tables of a report, as rows of words ready to be shown. HTML and Markdown are made from the same tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from prime_pipeline.reports import published, wording
from prime_pipeline.reports.claims import could_be_told_apart
from prime_pipeline.reports.content import (
    EXTRACTIVE,
    Cell,
    Comparison,
    Contrast,
    ReportContent,
    SystemCost,
    in_order,
)
from prime_pipeline.reports.layout import (
    Datum,
    Key,
    Table,
    cell_datum,
    compact,
    matrix,
    n_datum,
    number_datum,
    place,
    plain_datum,
    published_datum,
    text_datum,
)
from prime_pipeline.reports.published import Published

_BRIGHT: Final = "bright/"
_PUBLISHED: Final = "published"
_TOLD: Final = ("family", "data", "level", "questions")
"""Columns that a caption tells where they are the same throughout."""


def report_tables(content: ReportContent) -> tuple[Table, ...]:
    """All tables, in the order of the report; those without rows too, and none with a column that tells nothing."""
    return tuple(compact(table, _TOLD) for table in _tables(content))


def _tables(content: ReportContent) -> tuple[Table, ...]:
    return (
        _table_1(content),
        _table_2(content),
        _table_3(content),
        _table_4(content),
        _contrasts("table-5a", content),
        _contrasts("table-5b", content),
        _sections(content),
        _answers(content),
        _audit(content),
        _costs(content),
        _comparisons(content),
        _question_types(content),
        _profile(content),
        _mapping("settings", "Settings", content.settings),
        _mapping("fingerprints", "Fingerprints", content.fingerprints),
        _all_cells(content),
    )


# --- tables 1 to 4 ----------------------------------------------------------------------------------------------


def main_cells(content: ReportContent) -> list[Cell]:
    """Document-level cells of the report's own data set over all queries."""
    return [c for c in content.cells_of(content.dataset) if c.level == "document" and not c.question_type]


def _table_1(content: ReportContent) -> Table:
    cells = [c for c in main_cells(content) if c.pipeline == "hybrid+rerank" and not c.restructurer]
    rerankers = sorted({c.reranker for c in cells} - {""})
    columns, rows = matrix(
        cells,
        lambda c: (c.representation, c.reranker),
        lambda c: (c.measure,),
        lambda row: (f"{wording.representation_label(row[0])}{f', {row[1]}' if len(rerankers) > 1 else ''}",),
        lambda column: wording.measure_label(*column),
        lambda row, column: published.TABLE_1.get(row[0]) if column == ("ndcg@5",) else None,
    )
    caption = (
        "Every representation of the raw text behind the same two stages of retrieval"
        f"{', reranked by ' if rerankers else ''}{' or '.join(rerankers)}. The published column is the paper's, on the 416 "
        "papers and 1,451 queries of QASPER's test set."
    )
    return Table(
        "table-1",
        "Retrieval quality",
        "Table 1. Shared pipeline",
        caption,
        ("representation", *columns),
        rows,
    )


def _table_2(content: ReportContent) -> Table:
    columns, rows = matrix(
        [c for c in main_cells(content) if c.measure == "ndcg@5"],
        lambda c: (c.representation, c.restructurer),
        lambda c: (c.pipeline, c.reranker),
        lambda row: (wording.representation_label(*row),),
        lambda column: wording.pipeline_label(*column),
        lambda row, column: None if row[1] == EXTRACTIVE else published.TABLE_2.get((row[0], column[0])),
    )
    caption = (
        "NDCG@5 of each index representation (rows) in each pipeline (columns), with 95% intervals. Published columns are "
        "the paper's, on QASPER's test set."
    )
    title = "Table 2. Representation by pipeline"
    return Table("table-2", "Retrieval quality", title, caption, ("representation", *columns), rows)


def _table_3(content: ReportContent) -> Table:
    def task(cell: Cell | Comparison) -> str:
        return cell.dataset.removeprefix(_BRIGHT)

    cells = [c for c in content.cells if c.dataset.startswith(_BRIGHT) and c.measure == "ndcg@5"]
    columns, rows = matrix(
        [c for c in cells if not c.question_type and c.level == "document"],
        lambda c: (task(c),),
        lambda c: (c.representation, c.restructurer, c.pipeline, c.reranker),
        lambda row: row,
        lambda column: f"{wording.representation_label(*column[:2])}, {wording.pipeline_label(*column[2:])}",
    )
    changes = {task(c): c.relative for c in bright_comparisons(content)}
    rows = tuple(
        (
            *row,
            number_datum(changes.get(row[0].text), wording.signed_percent),
            published_datum(published.TABLE_3.get(row[0].text)),
        )
        for row in rows
    )
    caption = (
        "NDCG@5 on BRIGHT, and its relative change from the baseline to PRIME offline. Published: the paper's change; its "
        f"mean over the eight structured tasks is {published.TABLE_3_MEAN.text}."
    )
    headings = ("task", *columns, "change", f"change, {_PUBLISHED}")
    return Table("table-3", "Retrieval quality", "Table 3. BRIGHT tasks", caption, headings, rows)


def bright_comparisons(content: ReportContent) -> list[Comparison]:
    """What Table 3 calls the change: comparisons of PRIME offline on BRIGHT tasks, NDCG@5, the first of each task."""
    found: dict[str, Comparison] = {}
    for comparison in content.comparisons:
        if (
            comparison.dataset.startswith(_BRIGHT)
            and comparison.measure == "ndcg@5"
            and comparison.left == "prime-offline"
        ):
            found.setdefault(comparison.dataset, comparison)
    return [found[dataset] for dataset in sorted(found)]


def _table_4(content: ReportContent) -> Table:
    columns, rows = matrix(
        [c for c in content.cells_of("nfcorpus") if c.level == "document" and not c.question_type],
        lambda c: (c.representation, c.restructurer, c.pipeline, c.reranker),
        lambda c: (c.measure,),
        lambda row: (wording.representation_label(*row[:2]), wording.pipeline_label(*row[2:])),
        lambda column: wording.measure_label(*column),
        lambda row, column: published.TABLE_4.get(row[0]) if column == ("ndcg@5",) else None,
    )
    caption = (
        "NFCorpus, short documents without headings. Grades of 1 and more count as relevant; measures marked graded use "
        "the grades as they are."
    )
    headings = ("representation", "pipeline", *columns)
    return Table("table-4", "Retrieval quality", "Table 4. NFCorpus", caption, headings, rows)


# --- tables 5 and 6 ---------------------------------------------------------------------------------------------


def _contrasts(table_id: Literal["table-5a", "table-5b"], content: ReportContent) -> Table:
    is_density = table_id == "table-5a"
    contrasts = content.density if is_density else content.evidence
    numbers = published.DENSITY if is_density else published.EVIDENCE
    rows = tuple(_contrast_row(contrast, numbers) for contrast in contrasts)
    what, caption = (
        (
            "A. Text density",
            "Token statistics of the raw and the restructured corpus, both with the IDF of the raw one.",
        )
        if is_density
        else (
            "B. Evidence localisation",
            f"How well sections that hold gold evidence are found, over the same queries.{_protocols(contrasts)}",
        )
    )
    caption += (
        f" {_made_by(content)} Intervals are 95% bootstrap intervals, each for one number alone; changes are not tested, nor "
        "adjusted for the number of measures. Published: the paper's relative change by SR."
    )
    columns = ("measure", "questions", "raw", "restructured", "change", f"change, {_PUBLISHED}", "n")
    return Table(table_id, "Context quality", f"Table 5 {what}", caption, columns, rows)


def _protocols(contrasts: Iterable[Contrast]) -> str:
    """Which rows follow the paper, where some do not."""
    papers = {contrast.question_type or "all": contrast.follows_paper for contrast in contrasts}
    if all(papers.values()):
        return ""
    rule = " Both texts are judged by the raw one, carried over section by section"
    if not any(papers.values()):
        return f"{rule}."
    of_paper = "; ".join(name for name, follows_paper in papers.items() if follows_paper)
    return f"{rule}; rows of the paper's protocol ({of_paper}) judge each text by its own."


def _sections(content: ReportContent) -> Table:
    cells = [c for c in content.cells_of(content.dataset) if c.level == "section" and not c.question_type]
    columns, rows = matrix(
        cells,
        lambda c: (c.representation, c.restructurer, c.pipeline, c.reranker),
        lambda c: (c.measure,),
        lambda row: (wording.representation_label(*row[:2]), wording.pipeline_label(*row[2:])),
        lambda column: wording.measure_label(*column),
    )
    caption = (
        "How well sections are found that hold gold evidence, or that the queries name as relevant: among all sections of the "
        "corpus, or (within-document) among those of the document that a question is about."
    )
    headings = ("representation", "pipeline", *columns)
    return Table("sections", "Context quality", "Sections with the evidence", caption, headings, rows)


def _contrast_row(contrast: Contrast, numbers: Mapping[str, Published]) -> tuple[Datum, ...]:
    return (
        text_datum(wording.measure_label(contrast.measure)),
        text_datum(contrast.question_type or "all"),
        number_datum(contrast.raw),
        number_datum(contrast.restructured),
        number_datum(contrast.relative, wording.signed_percent),
        published_datum(numbers.get(contrast.measure) if contrast.follows_paper else None),
        n_datum(contrast.raw.n, contrast.n_clusters),
    )


def _answers(content: ReportContent) -> Table:
    rows = tuple(
        (
            text_datum(row.condition),
            text_datum(row.question_type or "all"),
            number_datum(row.f1, wording.fine),
            published_datum(None if row.question_type else published.ANSWERS.get(row.condition)),
            number_datum(row.evidence_f1, wording.fine),
            plain_datum(row.f1.n, wording.count),
        )
        for row in content.answers
    )
    caption = (
        f"Answer-F1 of answers generated from retrieved sections: the corpus searched, then the one read. Evidence-F1 is "
        f"that of the paragraphs read. {_made_by(content)} Published: QASPER's test set."
    )
    columns = ("condition", "questions", "Answer-F1", f"Answer-F1, {_PUBLISHED}", "Evidence-F1", "n")
    return Table("answers", "Context quality", "Answers", caption, columns, rows)


def _audit(content: ReportContent) -> Table:
    rows = tuple(
        (
            text_datum(row.panel),
            text_datum(row.dimension),
            number_datum(row.share, wording.percent),
            published_datum(published.AUDIT.get(row.dimension)),
            n_datum(row.share.n, row.n_clusters),
        )
        for row in sorted(content.audit, key=lambda row: row.panel)
    )
    caption = (
        f"What restructuring kept: A evidence spans, B facts, C sentences that contradict the raw text, D "
        f"what the router would have spared. {_made_by(content)} Published: SR on QASPER."
    )
    columns = ("panel", "dimension", "share", f"share, {_PUBLISHED}", "n")
    return Table("table-6", "Fidelity", "Table 6. Fidelity audit", caption, columns, rows)


def _made_by(content: ReportContent) -> str:
    if content.restructurer == EXTRACTIVE:
        return "The restructured text is extractive: no language model took part."
    return f"The restructured text is SR by {content.restructurer}." if content.restructurer else ""


# --- cost -------------------------------------------------------------------------------------------------------


def _costs(content: ReportContent) -> Table:
    systems = _system_costs(content.costs)
    present = in_order((cost for costs in systems.values() for cost in costs), tuple(wording.COSTS))
    base = next((costs for key, costs in systems.items() if key[0] == "structure-chunks"), {})
    columns = ("representation", *(wording.COSTS.get(cost, cost) for cost in present))
    rows: list[tuple[Datum, ...]] = []
    for key, costs in systems.items():
        name = wording.representation_label(*key)
        rows.append((text_datum(name), *(_cost(cost, costs, base) for cost in present)))
        if key[0] == "prime-offline" and any(cost in published.COSTS for cost in present):
            numbers = (published_datum(published.COSTS.get(cost)) for cost in present)
            rows.append((text_datum(f"{name}, {_PUBLISHED}"), *numbers))
    caption = f"Below each cost its ratio to structure-chunks, which cut the same text at its headings. {_break_even(content)}"
    return Table("cost", "Cost", "Cost", caption, columns, tuple(rows))


def _system_costs(costs: Iterable[SystemCost]) -> dict[Key, dict[str, float]]:
    """Representation to its costs; those of a query are named by pipeline, where they differ there."""
    systems: dict[Key, dict[str, float]] = {}
    for system in sorted(costs, key=lambda system: place(system.key)):
        found = systems.setdefault((system.representation, system.restructurer), {})
        pipeline = wording.pipeline_label(system.pipeline, system.reranker)
        for cost, value in system.amounts.items():
            by_pipeline = f"{wording.COSTS.get(cost, cost)}, {pipeline}"
            found.setdefault(by_pipeline if pipeline and cost.startswith("query_") else cost, value)
    return {key: systems[key] for key in sorted(systems, key=place)}


def _cost(cost: str, costs: Mapping[str, float], base: Mapping[str, float]) -> Datum:
    if cost not in costs:
        return Datum("")
    beside = wording.ratio(costs[cost], base[cost]) if cost in base and costs is not base else ""
    return Datum(wording.amount(cost, costs[cost]), beside, costs[cost], "number")


def _break_even(content: ReportContent) -> str:
    found = content.break_even
    if found is None or found.n_queries is None:
        return "No break-even was computed."
    return (
        f"Break-even against reranking by a language model: {wording.count(found.n_queries)} queries "
        f"({wording.count(found.restructuring_tokens)} tokens of restructuring over "
        f"{wording.count(found.reranking_tokens_per_query)} a query). Published: {published.BREAK_EVEN.text}."
    )


# --- comparisons and the rest -----------------------------------------------------------------------------------


def system_label(comparison: Comparison, side: str) -> str:
    """One side of a comparison; only text that was restructured bears the restructurer's name."""
    is_restructured = side in {"sr-full-text", "prime-full", "control-shuffled"}
    return wording.representation_label(side, comparison.restructurer if is_restructured else "")


def _comparisons(content: ReportContent) -> Table:
    rows = tuple(_comparison_row(content, comparison) for comparison in content.comparisons)
    caption = (
        "Left minus right over the same queries, with 95% bootstrap intervals. p-values are adjusted by Holm's method over the "
        "family. MDE is the minimum detectable effect: the difference that so many queries would show four times out of five "
        "in a test of its own; after the adjustment it takes a larger one, and where they are too few for the family, none is "
        "large enough."
    )
    columns = (
        "family",
        "data",
        "measure",
        "pipeline",
        "left",
        "right",
        "difference",
        "relative",
        "p",
        "adjusted p",
    )
    headings = (*columns, "n", "MDE")
    return Table("comparisons", "Comparisons", "Paired comparisons", caption, headings, rows)


def _comparison_row(content: ReportContent, comparison: Comparison) -> tuple[Datum, ...]:
    return (
        text_datum(comparison.family),
        text_datum(comparison.dataset or content.dataset),
        text_datum(f"{wording.measure_label(comparison.measure)}, {comparison.level}"),
        text_datum(wording.pipeline_label(comparison.pipeline, comparison.reranker)),
        text_datum(system_label(comparison, comparison.left)),
        text_datum(system_label(comparison, comparison.right)),
        number_datum(comparison.difference, wording.signed),
        number_datum(comparison.relative, wording.signed_percent),
        plain_datum(comparison.p_value, wording.p_value),
        plain_datum(comparison.p_adjusted, wording.p_value),
        n_datum(comparison.difference.n, comparison.n_clusters),
        _detectable(comparison),
    )


def _detectable(comparison: Comparison) -> Datum:
    """The minimum detectable effect, or that there is none."""
    if could_be_told_apart(comparison):
        return plain_datum(comparison.minimum_detectable_effect, wording.fine)
    return Datum("none", "too few to tell", kind="number")


def _question_types(content: ReportContent) -> Table:
    cells = [c for c in content.cells_of(content.dataset) if c.question_type]
    columns, rows = matrix(
        cells,
        lambda c: (c.question_type, c.level, c.measure),
        lambda c: (c.representation, c.restructurer, c.pipeline, c.reranker),
        lambda row: (row[0], row[1], wording.measure_label(row[2])),
        lambda column: f"{wording.representation_label(*column[:2])}, {wording.pipeline_label(*column[2:])}",
    )
    n_of: dict[Key, int | None] = {
        (c.question_type, c.level, wording.measure_label(c.measure)): c.result.n for c in cells if c.result
    }
    rows = tuple(
        (*row, plain_datum(n_of.get(tuple(datum.text for datum in row[:3])), wording.count)) for row in rows
    )
    caption = (
        "The same systems on the questions of each type, and how many these are (n). Types with few questions have wide "
        "intervals, and where all values of a few are the same, intervals without width that say nothing."
    )
    headings = ("questions", "level", "measure", *columns, "n")
    return Table("question-types", "Breakdown", "By type of question", caption, headings, rows)


def _profile(content: ReportContent) -> Table:
    properties = content.profile.properties if content.profile else ()
    rows = tuple(
        (
            text_datum(p.name),
            number_datum(p.result),
            plain_datum(p.result.n, wording.count),
            text_datum(p.meaning),
        )
        for p in properties
    )
    caption = "Properties of the corpus that can be measured before any retrieval."
    columns = ("property", "value", "n", "what it means")
    return Table("corpus-profile", "Corpus profile", "Corpus profile", caption, columns, rows)


def _mapping(table_id: str, title: str, mapping: Mapping[str, str]) -> Table:
    rows = tuple((text_datum(key), text_datum(mapping[key])) for key in sorted(mapping))
    caption = {
        "settings": "What was chosen, or stood as default, when the numbers were made.",
        "fingerprints": "What identifies corpus, models and indexes: equal fingerprints, equal inputs.",
    }[table_id]
    return Table(table_id, "Settings", title, caption, ("name", "value"), rows)


def _all_cells(content: ReportContent) -> Table:
    rows = tuple(
        (
            text_datum(cell.dataset or content.dataset),
            text_datum(cell.level),
            text_datum(cell.question_type or "all"),
            text_datum(wording.representation_label(cell.representation, cell.restructurer)),
            text_datum(wording.pipeline_label(cell.pipeline, cell.reranker)),
            text_datum(wording.measure_label(cell.measure)),
            cell_datum(cell),
            plain_datum(cell.result.n if cell.result else None, wording.count),
        )
        for cell in sorted(content.cells, key=lambda cell: place(cell.key))
    )
    columns = ("data", "level", "questions", "representation", "pipeline", "measure", "value", "n")
    caption = "Every cell that the tables above are made of, and those that none of them shows."
    return Table("all-cells", "All cells", "All cells", caption, columns, rows, folded=True)
