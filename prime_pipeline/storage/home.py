"""PRIME_HOME: the one folder that holds everything the pipeline writes for one corpus.

Where things lie is decided here and nowhere else. What is in the files is the business of who writes them.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from prime_pipeline.errors import HomeNotWritable
from prime_pipeline.storage.atomic import GARBAGE_AGE_S, remove_leftovers, stale_leftovers

_STRATEGY = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Home:
    """The layout of a home folder.

    Attributes:
        root: The folder itself.
        cache_root: Whose caches are used. Homes below another one (``demo``) share the caches of that one, which are
            addressed by content and therefore never in the way of each other.
    """

    root: Path
    cache_root: Path

    @classmethod
    def at(cls, root: Path) -> Home:
        """The home in ``root``, with caches of its own."""
        return cls(root.absolute(), root.absolute())

    def below(self, name: str) -> Home:
        """A home of its own for a demo or an experiment, which shares this one's caches."""
        return Home(self.root / name, self.cache_root)

    @property
    def dagster(self) -> Path:
        """DAGSTER_HOME: runs, events, schedules."""
        return self.root / "dagster"

    @property
    def dagster_settings(self) -> Path:
        """A ``dagster.yaml`` of the user's own, whose values stand over ours; there need be none."""
        return self.root / "dagster.yaml"

    @property
    def documents(self) -> Path:
        """One JSON file per parsed document, and the catalogue of them."""
        return self.root / "documents"

    def restructured(self, strategy: str) -> Path:
        """Restructured documents by one strategy, named by its fingerprint."""
        return self.root / "restructured" / strategy

    def strategies(self) -> list[str]:
        """Names of the strategies that restructured documents are kept of, sorted."""
        folders = (self.root / "restructured").glob("*")
        return sorted(path.name for path in folders if _STRATEGY.fullmatch(path.name) and path.is_dir())

    def remove_strategy(self, name: str) -> int:
        """Remove the restructured documents of a strategy, and its seal; returns how many files."""
        folder = self.restructured(name)
        n_files = sum(1 for path in folder.rglob("*") if path.is_file())
        shutil.rmtree(folder, ignore_errors=True)
        self.seal(f"restructured-{name}").unlink(missing_ok=True)
        return n_files

    @property
    def ledger(self) -> Path:
        """What every run spent on language models."""
        return self.root / "ledger.sqlite"

    @property
    def llm_cache(self) -> Path:
        """Cache of language model replies, by content, and the verdicts on them."""
        return self.cache_root / "cache" / "llm.sqlite"

    @property
    def embeddings(self) -> Path:
        """Cache of embedding vectors, by model and text."""
        return self.cache_root / "cache" / "embeddings.sqlite"

    @property
    def token_vectors(self) -> Path:
        """Cache of token vectors for late interaction, by model and text, under a size limit."""
        return self.cache_root / "cache" / "token_vectors.sqlite"

    @property
    def token_counts(self) -> Path:
        """Cache of numbers of tokens, by model and text."""
        return self.cache_root / "cache" / "token_counts.sqlite"

    @property
    def exports(self) -> Path:
        """Models in the form of another runtime, a folder for each."""
        return self.cache_root / "cache" / "exports"

    @property
    def audits(self) -> Path:
        """Cache of fidelity audits, by document and whoever audited."""
        return self.cache_root / "cache" / "audits.sqlite"

    def indexes(self, variant: str) -> Path:
        """Builds of one variant (``offline``, ``full``) and the pointer to the live one."""
        return self.root / "indexes" / variant

    def seal(self, name: str) -> Path:
        """The sealed list of documents and versions: ``raw``, or ``restructured-<strategy>``."""
        return self.root / "corpora" / f"{name}.json"

    @property
    def forgotten(self) -> Path:
        """The list of documents that no refresh reads again."""
        return self.root / "forgotten.json"

    @property
    def mode_decision(self) -> Path:
        """What ``mode = auto`` came to at the last refresh."""
        return self.root / "mode.json"

    @property
    def warehouse(self) -> Path:
        """The published DuckDB snapshot."""
        return self.root / "warehouse.duckdb"

    def veto(self, variant: str) -> Path:
        """Why the newest build of a variant is not served, if its quality is the reason."""
        return self.root / "indexes" / variant / "veto.json"

    def measures(self, variant: str) -> Path:
        """The measures of the last evaluation of a variant."""
        return self.root / "reports" / f"measures-{variant}.json"

    def rankings(self, variant: str) -> Path:
        """What every system ranked in that evaluation."""
        return self.root / "reports" / f"rankings-{variant}.json"

    def study(self, name: str) -> Path:
        """What one study of the report found."""
        return self.root / "reports" / "studies" / f"{name}.json"

    @property
    def reports(self) -> Path:
        """The report on what is published, as page, Markdown and JSON."""
        return self.root / "reports"

    @property
    def experiment_report(self) -> Path:
        """The report on the paper's experiment over what is published, likewise."""
        return self.reports / "experiment"

    @property
    def diffs(self) -> Path:
        """A page per restructured document: raw beside restructured text, with verdicts."""
        return self.root / "reports" / "restructured"

    @property
    def settings_file(self) -> Path:
        """Settings that belong to this home: what it was first refreshed with."""
        return self.root / "prime.toml"

    def prepare(self) -> None:
        """Make the folder and see that it can be written.

        Raises:
            HomeNotWritable: It cannot.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root):  # leaves nothing, and touches no file that is there
                pass
            self.dagster.mkdir(exist_ok=True)
        except OSError as error:
            raise HomeNotWritable(self.root, error) from error

    def remove_leftovers(self) -> int:
        """Remove temporary files that killed processes left beside what they were writing; returns how many."""
        return sum(remove_leftovers(folder, older_than_s=GARBAGE_AGE_S) for folder in self._written_folders)

    def leftovers(self) -> list[Path]:
        """Temporary files of killed processes: what :meth:`remove_leftovers` would remove."""
        stale = (stale_leftovers(folder, older_than_s=GARBAGE_AGE_S) for folder in self._written_folders)
        return [path for found in stale for path in found]

    @property
    def _written_folders(self) -> tuple[Path, ...]:
        """Those whose files are replaced as a whole, and that nothing else tidies up."""
        return (
            self.root,
            self.reports,
            self.reports / "studies",
            self.root / "corpora",
            self.dagster,
            *self.exports.glob("*"),
        )

    def held_locks(self) -> list[str]:
        """Names of the locks that some process holds now. On systems without ``flock`` none are told."""
        try:
            import fcntl
        except ImportError:
            return []
        held = []
        for path in sorted((self.root / "locks").glob("*.lock")):
            with path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    held.append(path.stem)
        return held

    def index_lock(self, variant: str) -> AbstractContextManager[None]:
        """The lock of whoever changes the builds of a variant."""
        return self.lock(f"index-{variant}")

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold a lock between processes; it goes away with the process that holds it, however that ends.

        Raises:
            HomeNotWritable: The lock's file cannot be made.
        """
        folder = self.root / "locks"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            held = FileLock(folder / f"{name}.lock")
            held.acquire()
        except OSError as error:
            raise HomeNotWritable(self.root, error) from error
        try:
            yield
        finally:
            held.release()
