"""The report on what a workspace publishes: all studies together, written where it is found, beside another one if asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from prime_pipeline.corpus.source import INSTALLED
from prime_pipeline.errors import NothingToStudy
from prime_pipeline.evaluation.statistics import PerQuery, paired_difference
from prime_pipeline.indexes.builds import Manifest, read_manifest
from prime_pipeline.reporting.answers import kept_answers
from prime_pipeline.reporting.studies import STUDIES, query_faults, restructurer
from prime_pipeline.reports import wording
from prime_pipeline.reports.content import Measured, ReportContent
from prime_pipeline.reports.page import layout_mark
from prime_pipeline.reports.report_json import to_json
from prime_pipeline.reports.side_by_side import compare
from prime_pipeline.reports.writing import ReportFiles, read_report, report_files, write_report
from prime_pipeline.storage.atomic import write_text
from prime_pipeline.storage.seal import read_seal
from prime_pipeline.studies.findings import Study, difference, merged, read_study
from prime_pipeline.workspace import Workspace

_FULL_MODE: Final = "prime refresh --mode full"
_WITH_QUERIES: Final = "prime refresh --queries FILE"
_EVALUATE: Final = "prime evaluate"
_CHANGED: Final = frozenset({"accepted", "repaired", "patched"})
"""Outcomes of sections whose restructured text is another one than the raw."""
_QUERIES: Final = "queries"
"""Whose fingerprint tells whether two reports are about the same questions."""
_HEAD: Final = 2_000
"""Characters of a page within which its layout is named."""
_SETTINGS: Final = (
    ("profile", "mode", "corpus", "queries", "lexical_source"),
    ("metadata", "index", "retrieval", "restructuring", "answers"),
)
"""Those that a report names: single ones, then groups. The language model's own are not among them: they hold the key."""


@dataclass(frozen=True, slots=True)
class PublishedReport:
    """A report as it is written.

    Attributes:
        content: What it says.
        files: Where it lies.
        changed: Whether it was written now.
    """

    content: ReportContent
    files: ReportFiles
    changed: bool


def home_report(
    workspace: Workspace, *, without: Sequence[str] = (), more: Sequence[Study] = ()
) -> ReportContent:
    """What the studies of a home say, as they are kept; a study that was never made is missing.

    Args:
        workspace: Of the home.
        without: Studies that are left out.
        more: Further ones, which come first.

    Raises:
        NothingToStudy: Nothing is published.
    """
    variants = workspace.published_variants()
    if not variants:
        raise NothingToStudy("nothing is published to report on: run `prime refresh --corpus DIR` first")
    found = (read_study(workspace.home.study(name)) for name in STUDIES if name not in without)
    studies = [*more, *(study for study in found if study is not None)]
    answers, is_current = kept_answers(workspace)
    stale: tuple[str, ...] = ()
    if answers and is_current:
        studies.append(answers)
    elif answers:
        stale = (
            "Generated answers are of an earlier index or other questions, and are left out: prime answer",
        )
    head = _head(workspace, variants, studies)
    content = merged(head, [study.findings.content for study in studies])
    return replace(content, notes=content.notes + stale)


def publish_report(workspace: Workspace) -> PublishedReport:
    """Write the report into the home, unless the one that is there says the same."""
    return write_if_changed(workspace, home_report(workspace), workspace.home.reports)


def write_if_changed(workspace: Workspace, content: ReportContent, folder: Path) -> PublishedReport:
    """Write a report into a folder of the home, unless the one that is there says the same."""
    files = report_files(folder)
    with workspace.home.lock("report"):
        if _is_written(files, content):
            return PublishedReport(content, files, changed=False)
        return PublishedReport(content, write_report(folder, content), changed=True)


def write_comparison(other: Path, content: ReportContent, target: Path) -> None:
    """Write a page with another report on the left and this one on the right, with paired differences where they can be.

    Args:
        other: A report's folder, a home folder, or a ``report.json``.
        content: The report on the right.
        target: The page.

    Raises:
        ReportError: The other report cannot be read.
    """
    in_home = other / "reports" / "report.json"
    left = read_report(in_home if in_home.is_file() else other)
    # Ids of queries may be numbers of lines: the same ids are the same questions only if the whole sets are.
    is_same = left.fingerprints.get(_QUERIES) == content.fingerprints.get(_QUERIES)
    paired = partial(_paired, content.clusters) if is_same else None
    write_text(target, compare(left, content, paired))


def _paired(clusters: Mapping[str, str], left: PerQuery, right: PerQuery) -> Measured:
    known = clusters if left.keys() <= clusters.keys() else None
    return difference(paired_difference(right, left, known))


def _is_written(files: ReportFiles, content: ReportContent) -> bool:
    try:
        return (
            layout_mark() in files.page.read_text(encoding="utf-8")[:_HEAD]
            and files.markdown.is_file()
            and files.json.read_text(encoding="utf-8") == to_json(content)
        )
    except (OSError, UnicodeDecodeError):
        return False


def _head(workspace: Workspace, variants: Sequence[str], studies: Sequence[Study]) -> ReportContent:
    settings, queries = workspace.settings, workspace.query_set
    corpus = settings.corpus_location
    path = Path(corpus)
    name = "installed documentation" if corpus == INSTALLED else path.name if path.is_dir() else path.stem
    builds = {variant: workspace.builds(variant) for variant in variants}
    manifests = {variant: read_manifest(found.path(found.served_id)) for variant, found in builds.items()}
    served = builds[variants[-1]].history()[-1]
    fingerprints = {_QUERIES: queries.fingerprint} if queries else {}
    for variant, manifest in manifests.items():
        fingerprints[f"{variant} index"] = manifest.build_id
        fingerprints[f"{variant} corpus"] = manifest.corpus_version
        fingerprints[f"{variant} embedder"] = f"{manifest.embedder_name} {manifest.embedder_fingerprint}"
    fingerprints |= {f"study {study.name}": study.fingerprint for study in studies}
    return ReportContent(
        title=f"Retrieval report: {name}",
        dataset=queries.name if queries else name,
        created=f"index published {served['published_at'][:16].replace('T', ' ')} UTC",
        n_documents=manifests[variants[0]].n_documents,
        known_item=queries.known_item if queries else False,
        clusters=(queries.clusters or {}) if queries else {},
        notes=tuple(_head_notes(workspace, manifests)),
        restructurer=restructurer(workspace) if "full" in variants else "",
        settings=dict(_shown_settings(workspace)),
        fingerprints=fingerprints,
        commands=_commands(workspace),
    )


def _commands(workspace: Workspace) -> dict[str, str]:
    """By table, the command that fills it: with queries at hand, evaluating is enough."""
    queries = workspace.query_set
    has_queries = queries is not None
    measure = _EVALUATE if has_queries else _WITH_QUERIES
    return {
        "table-1": "prime reproduce qasper",
        "table-2": f"{measure}, or prime reproduce qasper",
        "table-3": "prime reproduce bright",
        "table-4": "prime reproduce nfcorpus",
        "table-5a": _FULL_MODE,
        "table-5b": _FULL_MODE if has_queries else f"{_FULL_MODE} --queries FILE",
        "sections": measure,
        "answers": "prime answer",
        "table-6": _FULL_MODE,
        "cost": "prime refresh",
        "comparisons": measure,
        **(
            {} if queries and not queries.types else {"question-types": measure}
        ),  # a query without a type gets none
        "corpus-profile": "prime profile",
        "all-cells": measure,
    }


def _head_notes(workspace: Workspace, manifests: Mapping[str, Manifest]) -> Iterator[str]:
    sealed = read_seal(workspace.home.seal("raw")).version
    if manifests["offline"].corpus_version != sealed:
        yield (
            "What is served is a build of an earlier corpus: studies of texts are about the newest corpus, those of "
            "retrieval about what is served."
        )
    evaluated = {report.variant for report in workspace.evaluations()}
    if workspace.query_set is not None and (unmeasured := [v for v in manifests if v not in evaluated]):
        yield (
            f"Index {' and '.join(unmeasured)}: not evaluated yet with the queries and settings of now, so that no "
            f"measure is shown: {_EVALUATE}."
        )
    if (decision := workspace.mode_decision) is not None:
        yield f"Mode {decision.label}. {' '.join(decision.reasons)}"
    yield from query_faults(workspace)
    if "full" in manifests and workspace.has_corpus("full"):
        yield _changed_sections(workspace)
    if "full" in manifests and not workspace.has_corpus("full"):
        yield (
            f"The settings ask for {workspace.strategy.label}, and what is served was restructured by "
            f"{manifests['full'].restructuring}: studies of the restructured text are left out until a refresh."
        )


def _changed_sections(workspace: Workspace) -> str:
    """How much of the restructured text is another text at all."""
    n_sections = n_changed = 0
    for outcome in workspace.restructured.outcomes():
        n_sections += len(outcome.sections)
        n_changed += sum(section.kind in _CHANGED for section in outcome.sections)
    return (
        f"Restructuring changed {n_changed:,} of {wording.plural(n_sections, 'section')}; the others are served as they were, so that "
        "the two texts are alike in them."
    )


def _shown_settings(workspace: Workspace) -> dict[str, str]:
    settings = workspace.settings
    shown: dict[str, Any] = {name: getattr(settings, name) for name in _SETTINGS[0]}
    for group in _SETTINGS[1]:
        for name, value in getattr(settings, group).model_dump(mode="json").items():
            shown[f"{group}.{name}"] = value
    shown |= {
        "mode": workspace.mode_label,
        "embedder": workspace.embedder.name,
        "section scorer": workspace.scorer_name,
        "evaluated systems": ", ".join(settings.evaluate),
        "nli_model": settings.contradiction_model,
    }
    if "full" in workspace.published_variants():
        shown["restructuring strategy"] = workspace.strategy.label
    return {name: _worded(value) for name, value in shown.items()}


def _worded(value: Any) -> str:
    if value is None or value in ("", {}, []):
        return "default"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)
