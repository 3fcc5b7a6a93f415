"""Assets of the report: one for each study, generated answers on request, and the report itself."""

from collections.abc import Mapping

import dagster as dg

from prime_pipeline.defs.describing import spending_metadata, tags
from prime_pipeline.defs.evaluation_asset import retrieval_runs
from prime_pipeline.defs.index_assets import published_index_key
from prime_pipeline.defs.restructuring_assets import POOL
from prime_pipeline.indexes.builds import VARIANTS
from prime_pipeline.reporting.answers import ANSWERS, conditions_left_out, generated_answers
from prime_pipeline.reporting.report import publish_report
from prime_pipeline.reporting.studies import STUDIES
from prime_pipeline.reports.markdown import findings_markdown, report_markdown
from prime_pipeline.studies.findings import Study
from prime_pipeline.workspace import Workspace

_GROUP = "reports"
_OWNERS = ["team:search"]
_PUBLISHED = [published_index_key(variant) for variant in VARIANTS]
_DESCRIPTIONS = {
    "corpus_profile": "What the corpus is like before anything is retrieved, the regime that this predicts, and whether "
    "metadata will help.",
    "retrieval_quality": "What each system is worth on the configured queries, with intervals, by type of question, and "
    "which differences can be told apart.",
    "evidence_localisation": "How well sections that hold gold evidence are found, in the raw and in the restructured text.",
    "text_density": "How dense raw and restructured text are in what tells documents apart, by the IDF of the raw corpus.",
    "fidelity_audit": "What restructuring kept, added and contradicted, and whether the router would have spared what it "
    "harmed.",
    "index_costs": "What the published indexes cost in tokens, vectors, bytes and money, beside embedding every section.",
}
_IF_RED = "\n\nIf red: a stored text or ranking is damaged; refresh again, which makes it anew. The report keeps the study as it was."
_EVALUATED = {"retrieval_quality", "evidence_localisation", "index_costs"}


def study_asset(name: str) -> dg.AssetsDefinition:
    """The asset of one study."""

    @dg.asset(
        key=name,
        group_name=_GROUP,
        deps=[*_PUBLISHED, *([retrieval_runs] if name in _EVALUATED else [])],
        kinds={"python"},
        owners=_OWNERS,
        tags=tags("evaluation"),
        code_version="1",
        description=_DESCRIPTIONS[name] + _IF_RED,
    )
    def study(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
        return _result(STUDIES[name](workspace))

    return study


study_assets = [study_asset(name) for name in STUDIES]


@dg.asset(
    key=ANSWERS,
    group_name=_GROUP,
    deps=[*_PUBLISHED, retrieval_runs],
    kinds={"openai"},
    pool=POOL,
    owners=_OWNERS,
    tags=tags("evaluation"),
    code_version="1",
)
def generated_answers_asset(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
    """Answers of a language model to the questions that have reference answers, scored as QASPER does.

    This spends money, so that no refresh makes it: the job `answer` does. See `prime answer --estimate` for its price.

    If red: the endpoint is down or the budget is spent. Mend that and run the job again: answers that were paid are kept.
    """
    left_out = conditions_left_out(workspace)
    study, spent = generated_answers(workspace)
    facts = spending_metadata(spent, workspace.settings.llm.price)
    return _result(study, {**facts, **({"left out": " ".join(left_out)} if left_out else {})})


@dg.asset(
    group_name=_GROUP,
    deps=[*_PUBLISHED, *study_assets, generated_answers_asset],
    kinds={"html"},
    owners=_OWNERS,
    tags=tags("delivery"),
    code_version="1",
)
def report(workspace: dg.ResourceParam[Workspace]) -> dg.MaterializeResult[None]:
    """All that was measured of what is published: one page that opens offline, the same as Markdown and as JSON.

    Open the page at the path that the event names (browsers follow no link from here to a file); `prime report` names it
    too.

    If red: nothing is published, or the folder cannot be written. The page of before stays.
    """
    published = publish_report(workspace)
    return dg.MaterializeResult(
        metadata={
            "changed": int(published.changed),
            "page": dg.MetadataValue.path(str(published.files.page)),
            "report": dg.MetadataValue.md(report_markdown(published.content)),
        }
    )


def _result(study: Study, more: Mapping[str, int | float | str] | None = None) -> dg.MaterializeResult[None]:
    metadata: dict[str, dg.MetadataValue | int | float | str] = {
        "changed": int(study.changed),
        "seconds": round(study.seconds, 3),
        **study.findings.counts,
        **(more or {}),
    }
    found = findings_markdown(study.findings.content).strip()
    metadata["findings"] = dg.MetadataValue.md(found or "Nothing to look at.")
    return dg.MaterializeResult(data_version=dg.DataVersion(study.fingerprint), metadata=metadata)
