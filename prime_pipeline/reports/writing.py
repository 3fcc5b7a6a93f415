"""The files of a report: page, Markdown and JSON, each replaced in one step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from prime_pipeline.errors import ReportError
from prime_pipeline.reports.content import ReportContent
from prime_pipeline.reports.markdown import report_markdown
from prime_pipeline.reports.page import report_page
from prime_pipeline.reports.report_json import from_json, to_json
from prime_pipeline.storage.atomic import write_text


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where a report lies."""

    page: Path
    markdown: Path
    json: Path


def report_files(folder: Path) -> ReportFiles:
    """Where a report of a folder lies, whether or not there is one."""
    return ReportFiles(folder / "report.html", folder / "report.md", folder / "report.json")


def write_report(folder: Path, content: ReportContent) -> ReportFiles:
    """Write ``report.html``, ``report.md`` and ``report.json`` into a folder, which is made if need be.

    All three are made before the first is written, so that a refused report replaces nothing.

    Raises:
        ReportError: See :func:`~prime_pipeline.reports.content.check`.
        StoreUnavailable: The folder cannot be written.
    """
    files = report_files(folder)
    texts = {
        files.page: report_page(content),
        files.markdown: report_markdown(content),
        files.json: to_json(content),
    }
    for path, text in texts.items():
        write_text(path, text)
    return files


def read_report(path: Path) -> ReportContent:
    """Read a ``report.json``, or the one of a report's folder.

    Raises:
        ReportError: There is none, or it is no report; the message names the file.
    """
    file = path / "report.json" if path.is_dir() else path
    try:
        return from_json(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ReportError(
            f"cannot read the report {file}: {error}. Give a report's folder or its report.json"
        ) from error
    except ReportError as error:
        raise ReportError(f"{file}: {error}") from error
