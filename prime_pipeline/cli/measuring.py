"""Commands that measure: score rankings, profile the corpus, generate answers, report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prime_pipeline.cli.doorway import (
    EXIT_PARTIAL,
    HomeOption,
    JsonOption,
    app,
    given_path,
    opened_workspace,
    print_json,
    report_error,
    reporting,
)

if TYPE_CHECKING:
    from prime_pipeline.evaluation.run_files import RunScores
    from prime_pipeline.evaluation.statistics import Interval
    from prime_pipeline.reports.content import Comparison, Measured
    from prime_pipeline.workspace import Workspace

_RUN_HELP = (
    "A TREC run to score, yours or another's; may be given several times, and is compared with the first."
)


@app.command()
def evaluate(
    run: Annotated[list[Path] | None, typer.Option("--run", parser=given_path, help=_RUN_HELP)] = None,
    qrels: Annotated[
        Path | None, typer.Option(parser=given_path, help="Its judgements, in TREC's or BEIR's layout.")
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option("--measure", help="ndcg@k, p@k, r@k, mrr or map; the first is compared by."),
    ] = None,
    binary: Annotated[
        bool, typer.Option("--binary", help="With --run: count every relevant grade as 1.")
    ] = False,
    by_document: Annotated[
        bool,
        typer.Option(
            "--by-document",
            help="With --run: each query was asked about its one relevant document; resample these.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(parser=given_path, help="Write what was ranked here, as TREC runs and judgements."),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score what is served with the configured queries; or, with --run and --qrels, rankings in files.

    Every mean stands with its 95 % interval, and systems are compared in pairs over the same queries.
    """
    if bool(run) != (qrels is not None):
        raise typer.BadParameter(
            "a run needs its judgements, and judgements their run: give both --run and --qrels"
        )
    if run and out:
        raise typer.BadParameter("--out writes what this index ranked: leave it out with --run")
    if (measure or binary or by_document) and not run:
        raise typer.BadParameter(
            "--measure, --binary and --by-document go with --run: the index is always scored by the same measures"
        )
    from prime_pipeline.evaluation.measures import MEASURE_FORMS, is_measure

    if unknown := [name for name in measure or () if not is_measure(name)]:
        raise typer.BadParameter(f"unknown measure {unknown[0]!r}: use {MEASURE_FORMS}")
    with reporting(as_json) as console:
        if run and qrels:
            from prime_pipeline.console.measuring import scores_view
            from prime_pipeline.evaluation.run_files import RUN_MEASURES, score_runs

            with console.status("scoring", spinner="dots") if not as_json else console:
                scores = score_runs(
                    run, qrels, measure or RUN_MEASURES, is_binary=binary, by_document=by_document
                )
            if as_json:
                print_json(_scores_fields(scores))
            else:
                console.print(scores_view(scores), crop=False)
            return
        _evaluate_served(console, home, out, as_json)


@app.command()
def profile(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Tell what the corpus is like, and whether metadata will help to search it, before anything is retrieved."""
    with reporting(as_json) as console:
        from prime_pipeline.console.measuring import profile_view
        from prime_pipeline.reporting.studies import corpus_profile

        with opened_workspace({"home": home}, console, show_progress=not as_json) as workspace:
            workspace.builds("offline").served_id  # noqa: B018  raises before a study is made of nothing
            content = corpus_profile(workspace).findings.content
        found = content.profile
        if found is None:
            raise RuntimeError("the profile holds no profile")
        if as_json:
            properties = [
                {"name": p.name, **_measured_fields(p.result), "meaning": p.meaning} for p in found.properties
            ]
            print_json(
                {
                    "regime": found.regime,
                    "recommended_mode": found.recommended_mode,
                    "evidence": list(found.evidence),
                    "properties": properties,
                    "notes": list(content.notes),
                }
            )
        else:
            console.print(profile_view(found, content.notes), crop=False)


@app.command()
def answer(
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Only tell what it would cost; nothing is asked.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have the language model answer the questions that have reference answers, and score the answers.

    Read are the sections that the last evaluation found, raw and, in full mode, restructured. This spends money, within
    the budget of the llm settings: see --estimate. Exits with 3 if some questions are still open; run it again to go on.
    """
    with reporting(as_json) as console:
        from prime_pipeline.console.measuring import answers_view, estimate_view
        from prime_pipeline.console.parts import messages
        from prime_pipeline.errors import AnswersIncomplete
        from prime_pipeline.reporting.answers import (
            answer_price,
            conditions_left_out,
            estimate_generated_answers,
            generated_answers,
        )
        from prime_pipeline.reporting.report import publish_report

        with opened_workspace({"home": home}, console, show_progress=not as_json) as workspace:
            price = answer_price(workspace)
            currency = price.currency if price else None
            left_out = conditions_left_out(workspace)
            if not as_json:
                for note in messages("note:", left_out):  # before anything is paid
                    console.print(note, soft_wrap=True)
            if estimate:
                expected = estimate_generated_answers(workspace)
                if as_json:
                    print_json({**asdict(expected), "currency": currency, "notes": left_out})
                else:
                    console.print(estimate_view(expected, currency))
                return
            try:
                study, spent = generated_answers(workspace)
            except AnswersIncomplete as error:
                report_error(as_json, type(error).__name__, str(error))
                raise typer.Exit(EXIT_PARTIAL) from None
            published = publish_report(workspace)
        content = study.findings.content
        cost = price.cost(spent.prompt_tokens, spent.completion_tokens) if price else None
        if as_json:
            print_json(
                {
                    "answers": [
                        {
                            "condition": row.condition,
                            "questions": row.question_type or "all",
                            "answer_f1": _measured_fields(row.f1),
                            "evidence_f1": row.evidence_f1 and _measured_fields(row.evidence_f1),
                        }
                        for row in content.answers
                    ],
                    "comparisons": [_comparison_fields(found) for found in content.comparisons],
                    "notes": [*left_out, *content.notes],
                    "spending": {**asdict(spent), "cost": cost, "currency": currency},
                    "report": str(published.files.page),
                }
            )
        else:
            console.print(answers_view(content, spent, cost, currency), crop=False)


@app.command()
def report(
    compare: Annotated[
        Path | None,
        typer.Option(help="Another report (its folder, home or report.json), to stand beside this one."),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report on what is published: quality, text, fidelity, cost and corpus, every number with its interval.

    Writes one page that opens offline, and the same as Markdown and JSON. No language model is asked.
    """
    with reporting(as_json) as console:
        from prime_pipeline.console.measuring import report_view
        from prime_pipeline.reporting.report import publish_report, write_comparison
        from prime_pipeline.reporting.studies import STUDIES
        from prime_pipeline.reports.summary import summary

        with opened_workspace({"home": home}, console, show_progress=not as_json) as workspace:
            for position, study in enumerate(_reportable(workspace, STUDIES).values(), start=1):
                study(workspace)
                workspace.progress("studies", position, len(STUDIES))
            published = publish_report(workspace)
            beside = workspace.home.reports / "comparison.html" if compare else None
            if compare and beside:
                write_comparison(compare, published.content, beside)
        files = [
            published.files.page,
            published.files.markdown,
            published.files.json,
            *([beside] if beside else []),
        ]
        if as_json:
            told = summary(published.content)
            print_json(
                {
                    "changed": published.changed,
                    "page": str(published.files.page),
                    "markdown": str(published.files.markdown),
                    "json": str(published.files.json),
                    "comparison": str(beside) if beside else None,
                    "summary": {
                        topic: [str(sentence) for sentence in found] for topic, found in told.items()
                    },
                }
            )
        else:
            console.print(report_view(published.content, files), crop=False)


def _reportable(workspace: Workspace, studies: Mapping[str, Any]) -> Mapping[str, Any]:
    """The studies, if anything is published that they could be about."""
    workspace.builds("offline").served_id  # noqa: B018  raises before a study is made of nothing
    return studies


def _evaluate_served(console: Any, home: Path | None, out: Path | None, as_json: bool) -> None:
    from prime_pipeline.console.measuring import evaluation_view
    from prime_pipeline.reporting.evaluating import evaluate_published, write_runs
    from prime_pipeline.reporting.studies import query_faults, retrieval_quality

    with opened_workspace({"home": home}, console, show_progress=not as_json) as workspace:
        reports = evaluate_published(workspace)
        content = retrieval_quality(workspace).findings.content
        notes = query_faults(workspace)
        written = write_runs(workspace, out) if out else []
    if as_json:
        print_json(
            {
                "queries": reports[0].queries,
                "n_queries": reports[0].n_queries,
                "systems": [
                    {
                        "variant": found.variant,
                        "restructuring": found.restructuring,
                        "system": system,
                        "measures": {m: _interval_fields(i) for m, i in measured.intervals.items()},
                    }
                    for found in reports
                    for system, measured in found.systems.items()
                ],
                "comparisons": [_comparison_fields(found) for found in content.comparisons],
                "notes": notes,
                "files": [str(path) for path in written],
            }
        )
    else:
        console.print(evaluation_view(reports, content, written, notes), crop=False)


def _scores_fields(scores: RunScores) -> dict[str, Any]:
    return {
        "runs": [
            {
                "name": scored.name,
                "measures": {m: _interval_fields(interval) for m, interval in scored.intervals.items()},
                "n_queries": scored.evaluation.n_queries,
                "n_missing": scored.evaluation.n_missing,
                "n_unjudged": scored.evaluation.n_unjudged,
                "n_without_relevant": scored.evaluation.n_without_relevant,
            }
            for scored in scores.runs
        ],
        "comparisons": [
            {
                "left": left,
                "right": right,
                "measure": scores.compared,
                "difference": compared.difference,
                "low": compared.low,
                "high": compared.high,
                "p_value": compared.p_value,
                "p_adjusted": scores.p_adjusted[left, right],
                "minimum_detectable_effect": compared.minimum_detectable_effect,
            }
            for (left, right), compared in scores.comparisons.items()
        ],
        "warnings": list(scores.warnings),
    }


def _interval_fields(interval: Interval) -> dict[str, Any]:
    return {"value": interval.value, "low": interval.low, "high": interval.high, "n": interval.n}


def _measured_fields(measured: Measured) -> dict[str, Any]:
    return {"value": measured.value, "low": measured.low, "high": measured.high, "n": measured.n}


def _comparison_fields(found: Comparison) -> dict[str, Any]:
    return {
        "left": found.left,
        "right": found.right,
        "measure": found.measure,
        **{name: getattr(found.difference, name) for name in ("low", "high")},
        "difference": found.difference.value,
        "p_value": found.p_value,
        "p_adjusted": found.p_adjusted,
        "minimum_detectable_effect": found.minimum_detectable_effect,
    }
