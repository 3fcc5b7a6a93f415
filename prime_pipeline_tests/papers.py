"""Two papers with questions, answers and evidence in QASPER's layout, and a home that publishes them without Dagster."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from prime_pipeline.corpus.opening import open_corpus
from prime_pipeline.corpus.scan import scan
from prime_pipeline.refresh.restructuring import seal_restructured
from prime_pipeline.reporting.evaluating import evaluate_published
from prime_pipeline.settings import load_settings, remember
from prime_pipeline.storage.seal import seal_corpus
from prime_pipeline.workspace import Workspace
from prime_pipeline_tests.fakes import HashingEmbedder

OpenPapers = Callable[..., Workspace]
"""Opens a workspace with the settings it is given."""

WORDY: Final = (
    "Moreover, the scheduler of the Alpha project keeps 12 workers alive. It is worth noting that each worker reads "
    "the queue every 250 ms and never sleeps for longer. Furthermore, a job that fails three times is not tried again, "
    "and its record is kept for 30 days in order to let somebody look at it. In addition, the API of the scheduler "
    "answers within 20 ms."
)
"""A paragraph that restructuring shortens, so that no restructured text holds it word for word."""
REWRITTEN: Final = (
    "The scheduler of the Alpha project keeps 12 workers alive. Each worker reads the queue every 250 ms and never sleeps "
    "for longer. A job that fails three times is not tried again; its record is kept for 30 days so that somebody can "
    "look at it. The API of the scheduler answers within 20 ms."
)
"""What a language model may make of it, and the gate accepts."""
SHORT: Final = "The queue of Alpha holds 40 jobs."
"""A paragraph that restructuring leaves as it is."""


def _answer(evidence: tuple[str, ...] = (), **given: Any) -> dict[str, Any]:
    empty = {"unanswerable": False, "extractive_spans": [], "yes_no": None, "free_form_answer": ""}
    return {"answer": {**empty, **given, "evidence": list(evidence)}}


def _question(question_id: str, question: str, *answers: dict[str, Any]) -> dict[str, Any]:
    return {"question_id": question_id, "question": question, "answers": list(answers)}


def _paper(title: str, sections: dict[str, list[str]], *qas: dict[str, Any]) -> dict[str, Any]:
    return {
        "title": title,
        "abstract": "",
        "full_text": [{"section_name": name, "paragraphs": found} for name, found in sections.items()],
        "figures_and_tables": [],
        "qas": list(qas),
    }


PAPERS: Final[dict[str, Any]] = {
    "alpha": _paper(
        "Schedulers",
        {"Scheduling": [WORDY], "Queues": [SHORT]},
        _question(
            "a1", "How many workers are kept alive?", _answer((WORDY,), extractive_spans=["12 workers"])
        ),
        _question("a2", "Are 40 jobs in the queue?", _answer((SHORT,), yes_no=True)),
    ),
    "beta": _paper(
        "Baking",
        {"Dough": ["Knead the dough of the bread."], "Ovens": ["Heat the oven for an hour."]},
        _question(
            "b1",
            "How long is the oven heated?",
            _answer(("Heat the oven for an hour.",), free_form_answer="an hour"),
        ),
        _question("b2", "Who invented the bread?", _answer(unanswerable=True)),
    ),
}
"""Four questions, of every type one; evidence of the first is shortened by restructuring, that of the others is not."""


def write_papers(path: Path, papers: dict[str, Any] = PAPERS) -> Path:
    path.write_text(json.dumps(papers), encoding="utf-8")
    return path


def reworded(old: str, new: str) -> dict[str, Any]:
    """The papers with one text instead of another, wherever it stands."""
    return copy.deepcopy(json.loads(json.dumps(PAPERS).replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1])))


def opened(home: Path, papers: Path, **options: Any) -> Workspace:
    """A workspace on a home with these papers and their questions, as a new process would open it."""
    told = {"corpus": str(papers), "queries": str(papers), "restructuring": {"entities": "rule"}}
    return Workspace(load_settings({"home": home, **told, **options}), embedder=HashingEmbedder())


@contextmanager
def opening(home: Path, papers: Path, **defaults: Any) -> Iterator[OpenPapers]:
    """Opens workspaces on one home, each as a new process would, and closes them at the end of the block.

    Args:
        home: The home.
        papers: The file of papers.
        defaults: Settings of all of them; each may be opened with others.
    """
    with ExitStack() as workspaces:

        def open_one(**options: Any) -> Workspace:
            workspace = opened(home, papers, **{**defaults, **options})
            workspaces.callback(workspace.close)
            return workspace

        yield open_one


def publish(workspace: Workspace) -> None:
    """All that a refresh does before the studies."""
    location = workspace.settings.corpus_location
    scan(open_corpus(location), workspace.store, allow_removals=True)
    seal_corpus(workspace.store, workspace.home.seal("raw"), location)
    workspace.steps("offline").publish(keep=3)
    if workspace.settings.mode == "full":
        with workspace.restructuring() as steps:
            steps.restructure(steps.pending(), "run")
        seal_restructured(workspace.restructured, workspace.restructured_seal, location)
        workspace.steps("full").publish(keep=3)
    if workspace.query_set:
        evaluate_published(workspace)


def published_papers(folder: Path, *, questioned: bool = False, **options: Any) -> Path:
    """A home in a folder that publishes the papers with the embedder of commands, and remembers these settings.

    Args:
        folder: Gets the papers and the home.
        questioned: Whether it is evaluated with their questions.
        options: Settings.
    """
    papers = str(write_papers(folder / "papers.json"))
    told = {
        "home": folder / "home",
        "corpus": papers,
        **({"queries": papers} if questioned else {}),
        **options,
    }
    with pytest.MonkeyPatch.context() as surroundings:
        for name in [name for name in os.environ if name.startswith("PRIME_")]:
            surroundings.delenv(name)
        settings = load_settings(told)
    workspace = Workspace(settings)
    publish(workspace)
    remember(settings)
    workspace.close()
    return folder / "home"
