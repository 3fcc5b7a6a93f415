"""The error tree. Every class takes facts and words the message: what, which, and what to do about it.

``PrimeError`` is what a caller catches. The command line prints its message without a traceback and exits with 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import ClassVar


class PrimeError(Exception):
    """Base of all errors that a user can act on."""


# --- corpus -----------------------------------------------------------------------------------------------------


class CorpusError(PrimeError):
    """The corpus as a whole cannot be read."""


class CorpusNotSet(CorpusError):
    """No corpus is configured."""

    def __init__(self) -> None:
        super().__init__(
            'no corpus is set: pass --corpus DIR, set PRIME_CORPUS, or write corpus = "DIR" to prime.toml'
        )


class CorpusNotFound(CorpusError):
    """The corpus path does not exist."""

    def __init__(self, path: object) -> None:
        super().__init__(f"corpus {path} does not exist: check the path, or mount the volume that holds it")


class EmptyCorpus(CorpusError):
    """No document could be read; ``first_failure`` is the source and the reason of one that failed."""

    def __init__(self, path: object, n_failed: int = 0, first_failure: tuple[str, str] | None = None) -> None:
        detail = "first {}: {}".format(*first_failure) if first_failure else "see the scan's report"
        failed = f" ({n_failed} files failed, {detail})" if n_failed else ""
        super().__init__(
            f"corpus {path} holds no readable document{failed}: expected Markdown, HTML, reStructuredText, plain text, "
            "BEIR JSONL or QASPER JSON files"
        )


class TooManyRemovals(CorpusError):
    """A refresh would remove a large part of the corpus, which is what an unmounted folder looks like."""

    def __init__(self, path: object, n_removed: int, n_known: int) -> None:
        super().__init__(
            f"{n_removed} of {n_known} documents are gone from {path}, more than a fifth of the corpus: nothing was "
            "removed. If the folder is complete, run the refresh again with --allow-removals"
        )


class DocumentError(PrimeError):
    """One document cannot be used; the others go on.

    Attributes:
        source: The file or record at fault.
        reason: Why, without the file's name, for tables.
    """

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"{source}: {reason}")
        self.source = source
        self.reason = reason


class DuplicateDocumentId(DocumentError):
    """Two sources claim one id."""

    def __init__(self, source: str, doc_id: str, other: str) -> None:
        super().__init__(source, f"document id {doc_id!r} is already taken by {other}: rename one of them")


# --- storage ----------------------------------------------------------------------------------------------------


class StorageError(PrimeError):
    """Something under PRIME_HOME cannot be read or written."""


class HomeNotWritable(StorageError):
    """PRIME_HOME cannot be written."""

    def __init__(self, home: Path, cause: OSError) -> None:
        super().__init__(
            f"cannot write to PRIME_HOME {home}: {cause.strerror or cause}. Make it writable, free space, or set "
            "PRIME_HOME to another folder"
        )


class SchemaMismatch(StorageError):
    """A store was written by another version of this program."""

    remedy: ClassVar = (
        "use the version that wrote it, or move the file away and refresh (caches fill up again)"
    )

    def __init__(self, path: object, found: object, expected: object) -> None:
        super().__init__(f"{path} has schema version {found}, this program reads {expected}: {self.remedy}")


class StoreCorrupt(StorageError):
    """A stored file does not hold what was written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} is damaged ({reason}): delete it and run `prime refresh`, which makes it anew"
        )


class StoreUnavailable(StorageError):
    """A stored file is sound, as far as one knows, but cannot be used now."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"cannot use {path} ({reason}): make it writable, free space, or end the process that keeps it busy"
        )


class DocumentChanged(StorageError):
    """A document was replaced between two steps of a run."""

    def __init__(self, doc_id: str) -> None:
        super().__init__(
            f"document {doc_id!r} changed while this run was reading it: the published index stays as it was; "
            "run the refresh again"
        )


class UnreadableExclusions(StorageError):
    """The list of forgotten documents cannot be read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} is damaged ({reason}): it lists the documents that are never to be read again, so nothing is read "
            "without it. Put it back from a backup; or delete it, and forget those documents again"
        )


class DocumentUnknown(StorageError):
    """Nothing is kept under an id."""

    def __init__(self, name: str, similar: list[str]) -> None:
        meant = f"; similar ones: {', '.join(similar)}" if similar else ""
        super().__init__(
            f"no document {name!r} is kept in this home: ids are paths below the corpus, see `prime status`{meant}"
        )


class NothingWouldBeLeft(StorageError):
    """Every document would be forgotten, and there is no index of nothing."""

    def __init__(self, home: Path) -> None:
        super().__init__(
            f"no document would be left in {home}: to forget all of them, delete the folder (and its caches, if they lie elsewhere)"
        )


class RefreshRunning(StorageError):
    """A refresh is at work on what is to be forgotten."""

    def __init__(self, home: Path) -> None:
        super().__init__(
            f"a refresh of {home} is running and may hold the documents: wait until it has ended (`prime ui` shows it), "
            "then forget them again"
        )


class DagsterStorageUnusable(StorageError):
    """Dagster's own databases cannot be read or written."""

    def __init__(self, folder: Path, cause: Exception) -> None:
        reason = str(getattr(cause, "orig", None) or cause).splitlines()[0]
        super().__init__(
            f"Dagster's storage in {folder} cannot be used ({reason}): free space if the disk is full, else move that "
            "folder away and refresh again; this costs the history of runs and nothing else"
        )


class HistoryElsewhere(StorageError):
    """Dagster's history lies in a database, out of which nobody takes a document's name."""

    def __init__(self, settings: Path) -> None:
        super().__init__(
            f"runs and events lie where {settings} says, and what they tell of a document would stay there: move that file away, "
            "forget, empty the database, and put the file back; this costs the history of runs. Nothing was changed"
        )


class DagsterDatabaseUnusable(StorageError):
    """The databases that a home's ``dagster.yaml`` names cannot be read or written."""

    def __init__(self, settings: Path, cause: Exception) -> None:
        reason = str(getattr(cause, "orig", None) or cause).splitlines()[0]
        super().__init__(
            f"the database that {settings} names cannot be used ({reason}): see that it runs, lets this machine in and has "
            "space; what is published is served on"
        )


# --- releases in object storage -----------------------------------------------------------------------------------


class ReleaseError(PrimeError):
    """What is published to object storage cannot be used."""


class PasswordInAddress(ReleaseError):
    """An address would show its password to everybody."""

    def __init__(self) -> None:
        super().__init__(
            "the address holds a password, which messages and events would show: give that where the driver of fsspec looks for it, "
            "see docs/deployment.md"
        )


class RemoteUnusable(ReleaseError):
    """Object storage cannot be reached, read or written."""

    def __init__(self, url: str, cause: Exception) -> None:
        reason = str(cause).strip().splitlines() or [type(cause).__name__]
        remedy = (
            "install the driver that it names"
            if isinstance(cause, ImportError)
            else "check the address, the network and the credentials that its driver finds in the environment; what is published "
            "here is served on"
        )
        super().__init__(f"{url} cannot be used ({reason[0]}): {remedy}")


class ReleaseDamaged(ReleaseError):
    """What lies in object storage is not what was released."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"{url} is damaged ({reason}), or was replaced meanwhile: try again; if that does not help, delete CURRENT there and "
            "run `prime refresh` where it is published"
        )


class NothingReleased(ReleaseError):
    """Nothing was published to this address yet."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"nothing is published in {url}: check the address, or run `prime refresh` where publish_to names it"
        )


class HomeInUse(ReleaseError):
    """A home that makes an index of its own cannot take another one."""

    def __init__(self, home: Path) -> None:
        super().__init__(
            f"{home} makes an index of its own, which the next refresh would put in the place of the fetched one: take another "
            "--home"
        )


# --- models -----------------------------------------------------------------------------------------------------


class ModelError(PrimeError):
    """A model cannot be used."""


class ModelNotFound(ModelError):
    """A model is neither a directory nor in reach."""

    def __init__(self, model: str, remedy: str) -> None:
        super().__init__(f"model {model!r} was not found: {remedy}")


class ModelFilesChanged(ModelError):
    """A model's files are not the published ones."""

    def __init__(self, path: Path, found: str, expected: str) -> None:
        super().__init__(
            f"{path} has SHA-256 {found}, expected {expected}: the file is damaged or not the published model; "
            "reinstall the package that holds it"
        )


class OnnxNotInstalled(ModelError):
    """The packages that the backends onnx and int8 need are not there."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f'embedder_backend = "onnx" and "int8" need the package {package}: pip install \'prime-pipeline[onnx]\', '
            'or set it to "torch"'
        )


class ExportFailed(ModelError):
    """A model cannot be exported as an ONNX graph."""

    def __init__(self, directory: Path, reason: str) -> None:
        super().__init__(
            f'model folder {directory} cannot be exported to ONNX ({reason}): set embedder_backend = "torch"'
        )


class ExportDisagrees(ModelError):
    """An exported model ranks texts too differently from the original."""

    def __init__(self, model: str, backend: str, rank_correlation: float, least: float) -> None:
        super().__init__(
            f"{model} on {backend} ranks texts too differently from the original: rank correlation {rank_correlation:.4f}, at "
            f'least {least} is expected. Set embedder_backend = "torch"'
        )


# --- restructuring ------------------------------------------------------------------------------------------------


class MethodChanged(PrimeError):
    """A language model made what is published, and none is set any more."""

    def __init__(self, label: str) -> None:
        super().__init__(
            f"the published index was restructured by {label}, and no endpoint is set now: set llm.base_url and llm.model "
            "(a schedule does not see the variables of your terminal: write them to prime.toml), or say restructuring.method = "
            '"extractive" to go on without a language model'
        )


class DocumentNotRestructured(PrimeError):
    """There is no restructured document of that name."""

    def __init__(self, name: str, similar: list[str]) -> None:
        meant = f"; similar ones: {', '.join(similar)}" if similar else ""
        super().__init__(
            f'no restructured document {name!r}: restructuring runs in a refresh with mode = "full", and ids are paths '
            f"below the corpus{meant}"
        )


# --- language models ----------------------------------------------------------------------------------------------


class LanguageModelError(PrimeError):
    """A language model did not answer."""


class RequestRefused(LanguageModelError):
    """The endpoint will never answer this request; others it may.

    Attributes:
        code: ``context_length``, ``content_filter``, ``bad_request``, or ``truncated`` for an answer that did not
            fit into ``max_tokens``.
        reason: What the endpoint said.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"the endpoint refuses this request ({code}): {reason}")
        self.code = code
        self.reason = reason


class EndpointUnusable(LanguageModelError):
    """The endpoint answers nobody before a setting changes."""

    def __init__(self, base_url: str, reason: str) -> None:
        super().__init__(
            f"endpoint {base_url} cannot be used: {reason}. Check the llm settings (address, key, model) and the account"
        )


class EndpointUnavailable(LanguageModelError):
    """The endpoint did not answer in time, however often it was asked."""

    def __init__(self, base_url: str, reason: str, n_attempts: int, deadline_s: float) -> None:
        super().__init__(
            f"endpoint {base_url} did not answer within {deadline_s:.0f} s and {n_attempts} attempts (last: {reason}): "
            "see that it runs, or try later; what was answered is kept"
        )


class BudgetSpent(LanguageModelError):
    """The next call could cost more than this run may still spend."""

    def __init__(self, spent: str, limit: str, need: str) -> None:
        super().__init__(
            f"{spent} of {limit} are spent, and the next call may take up to {need}: what was answered is kept; run again "
            "(each run has the whole budget), or raise the limit if one call does not fit"
        )


class AnswersIncomplete(LanguageModelError):
    """Some questions have no answer for the time being, so that no mean is taken."""

    def __init__(self, condition: str, n_done: int, n_questions: int, reason: str) -> None:
        super().__init__(
            f"{n_done:,} of {n_questions:,} questions are answered under {condition}: {reason}. Answers are kept: run "
            "again to go on"
        )


class ChatClosed(LanguageModelError):
    """Somebody ended the run while this call was waiting or under way."""

    def __init__(self) -> None:
        super().__init__(
            "the run was ended before this request was answered: run again, what was answered is kept"
        )


# --- indexes ----------------------------------------------------------------------------------------------------


class IndexingError(PrimeError):
    """An index cannot be built or used."""


class IndexNotFound(IndexingError):
    """Nothing has been published yet."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"no index is published in {path}: run `prime refresh --corpus DIR` first")


class IndexCorrupt(IndexingError):
    """A published build does not agree with its manifest."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"index {path} is damaged ({reason}): run `prime refresh`, which builds it anew, or `prime rollback` to "
            "return to the build before"
        )


class IndexOutdated(SchemaMismatch):
    """An index was built by another version of this program."""

    remedy: ClassVar = (
        "run `prime refresh`, which builds the index anew and takes texts and vectors from the caches, or use the version "
        "that built it"
    )


class IndexModelMismatch(IndexingError):
    """The configured embedder is not the one that made the index."""

    def __init__(self, path: Path, found: str, expected: str) -> None:
        super().__init__(
            f"index {path} was built with embedder {found}, but {expected} is configured: run `prime refresh` to build "
            "it anew, or configure the embedder that built it"
        )


class QualityDropped(IndexingError):
    """A build finds less than the served one, by more than is allowed."""

    def __init__(self, build_id: str, found: str, candidate: Path) -> None:
        super().__init__(
            f"build {build_id} is not published: {found}. What was published before is served on; the build stays in {candidate} "
            "until another one is published or `prime gc` runs. See what changed, then run `prime refresh --accept-drop`, or "
            "raise index.max_ndcg_drop"
        )


class NoEarlierBuild(IndexingError):
    """There is nothing to roll back to."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} holds no earlier build to return to: rollback needs a build published before the live one"
        )


# --- settings, evaluation ---------------------------------------------------------------------------------------


class SettingsError(PrimeError):
    """A setting is unknown or out of range."""


class EvaluationError(PrimeError):
    """A run or its judgements cannot be scored."""


class NothingToStudy(EvaluationError):
    """A study was asked for by name, and there is nothing that it could look at."""


class ReportError(PrimeError):
    """A report cannot be written or read."""


# --- servers ----------------------------------------------------------------------------------------------------


class InvalidRequest(PrimeError):
    """A server was asked something that it does not answer, whoever asks."""


class NoSuchDays(InvalidRequest):
    """Documents were asked for whose last day lies before the first."""

    def __init__(self, since: date, until: date) -> None:
        super().__init__(f"since {since} lies after until {until}, so that no document can answer: swap them")


class UnknownDocument(PrimeError):
    """The published index holds no document, or no section, of that name."""

    def __init__(self, name: str, similar: Sequence[str] = ()) -> None:
        shown = name if len(name) <= 200 else f"{name[:200]}…"
        meant = f"; similar ones: {', '.join(similar)}" if similar else ""
        super().__init__(
            f"the index holds no {shown!r}: take ids from search results; after a refresh a document may be gone or have "
            f"other sections{meant}"
        )


class ServerBusy(PrimeError):
    """More requests wait than a server lets wait."""

    def __init__(self, n_waiting: int) -> None:
        super().__init__(f"{n_waiting} requests are waiting already: ask again in a second")


class TokenNeeded(PrimeError):
    """A server was to listen beyond this machine without a token."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"{host} can be reached from other machines: set a token, PRIME_SERVE__TOKEN or token under [serve], or "
            "listen on 127.0.0.1"
        )


class ExtraMissing(PrimeError):
    """A command needs an optional part of this package."""

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'prime-pipeline[{extra}]'")


class PortTaken(PrimeError):
    """A server cannot listen where it should."""

    def __init__(self, host: str, port: int, cause: OSError) -> None:
        super().__init__(
            f"cannot listen on {host}:{port}: {cause.strerror or cause}. Choose others with --host and --port"
        )


# --- data sets --------------------------------------------------------------------------------------------------


class DataFileDamaged(StoreCorrupt):
    """A file of a data set, which no refresh can make anew, does not hold what it should.

    Attributes:
        reason: Why, without the file's name, for tables.
    """

    def __init__(self, path: Path, reason: str) -> None:
        StorageError.__init__(self, f"{path} is damaged ({reason}): download or copy it again")
        self.reason = reason


class DataFileUnavailable(StoreUnavailable):
    """A file of a data set is missing, or cannot be read.

    Attributes:
        reason: Why, without the file's name, for tables.
    """

    def __init__(self, path: Path, reason: str) -> None:
        StorageError.__init__(self, f"cannot read {path} ({reason}): check the path, or copy the file there")
        self.reason = reason


class DatasetMissing(PrimeError):
    """A published data set is not in the folder where it was looked for."""
