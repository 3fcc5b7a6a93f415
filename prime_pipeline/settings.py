"""The one settings model: validated, from options, ``PRIME_*`` variables and ``prime.toml`` files, in this order.

Of two files the one in the home folder wins over the one in the working directory, since it belongs to what is stored
there. Each may extend another file, whose values stand right below its own. Only the command line, the Dagster
definitions and servers read settings; everything below them is handed its own small options record.
"""

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError as UnparsableVariable
from pydantic_settings.sources import InitSettingsSource

from prime_pipeline.corpus.bright import BRIGHT, bright_location
from prime_pipeline.corpus.source import INSTALLED
from prime_pipeline.datasets.locations import KNOWN_ITEMS
from prime_pipeline.errors import CorpusNotSet, PasswordInAddress, SettingsError
from prime_pipeline.evaluation.answering import AnswerOptions
from prime_pipeline.indexes.lexical import LexicalSource
from prime_pipeline.indexes.vectors import VectorOptions
from prime_pipeline.llm.budget import Prices
from prime_pipeline.metadata.options import MetadataOptions, Reading
from prime_pipeline.models.location import EMBEDDED_MODEL, PAPER_NLI_MODEL
from prime_pipeline.restructuring.prompts import PromptMode
from prime_pipeline.restructuring.rewriting import RewritingOptions
from prime_pipeline.restructuring.router import RouterOptions
from prime_pipeline.restructuring.rules.options import GateOptions
from prime_pipeline.retrieval.options import Arm, RetrievalOptions, Scorer, SectionText
from prime_pipeline.retrieval.systems import System
from prime_pipeline.storage.atomic import write_text
from prime_pipeline.storage.home import Home
from prime_pipeline.storage.releases import holds_password

Profile = Literal["embedded", "paper"]
Mode = Literal["offline", "full", "auto"]
Method = Literal["extractive", "llm"]
Partitioning = Literal["document", "bucket"]

_EMBEDDERS: dict[Profile, str] = {"embedded": EMBEDDED_MODEL, "paper": "BAAI/bge-small-en-v1.5"}
_NLI_MODELS: dict[Profile, str | None] = {"embedded": None, "paper": PAPER_NLI_MODEL}
_CHUNK_EMBEDDERS: dict[Profile, str | None] = {"embedded": None, "paper": "BAAI/bge-m3"}
_SCORERS: dict[Profile, Scorer] = {"embedded": "late_interaction", "paper": "cross_encoder"}
FILE_NAME = "prime.toml"
_PATHS = ("corpus", "queries", "home", "cache_home", "extends")
_NOT_INHERITED = ("home", "corpus", "queries", "cache_home", "evaluate", "mode", "publish_to", "extends")
_MODELS = ("embedder", "cross_encoder", "nli_model", "chunk_embedder")
_MOST = 1_000_000  # beyond any use, and far below what numpy, SQLite and hnswlib take
_Count = Annotated[int, Field(ge=0, le=_MOST)]
_Positive = Annotated[int, Field(ge=1, le=_MOST)]
_Factor = Annotated[float, Field(le=_MOST, allow_inf_nan=False)]
_Threshold = Annotated[float, Field(ge=0, le=_MOST, allow_inf_nan=False)]
_Record = TypeVar("_Record", RouterOptions, GateOptions)


def _replaced(defaults: _Record, chosen: Mapping[str, float]) -> _Record:
    """The record with some thresholds replaced; whole numbers where the default is one."""
    known = {field.name: type(getattr(defaults, field.name)) for field in fields(defaults)}
    if unknown := sorted(chosen.keys() - known.keys()):
        raise ValueError(f"no threshold {unknown[0]!r}: known are {', '.join(known)}")
    return replace(defaults, **{name: known[name](value) for name, value in chosen.items()})


class _Group(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MetadataSettings(_Group):
    """How metadata is synthesised."""

    reading: Reading = Field(
        default="default",
        description="paper_literal: title, terms (stop words included) and headings, without the lead; full_text: the text "
        "itself in the place of metadata.",
    )
    n_terms: int = Field(default=5, ge=0, le=50, description="Discriminative terms per document.")
    alpha: _Factor = Field(
        default=0.3,
        ge=0,
        description="Decay of a term's score with the position of its first occurrence.",
    )
    beta: _Factor = Field(
        default=2.0,
        gt=0,
        description="Factor for terms that occur in a heading.",
    )
    max_headings: _Count = Field(default=12, description="Distinctive headings in the metadata text.")

    def options(self) -> MetadataOptions:
        """As the metadata stage takes them."""
        return MetadataOptions(**self.model_dump())


class IndexSettings(_Group):
    """How indexes are built and kept."""

    vector_search: Literal["auto", "exact", "hnsw"] | None = Field(
        default=None,
        description="exact, hnsw, or auto (exact up to exact_limit). Default: auto; hnsw in the paper profile.",
    )
    exact_limit: int = Field(
        default=20_000, ge=0, le=1_000 * _MOST, description="Most vectors that auto searches exactly."
    )
    hnsw_m: int = Field(default=32, ge=2, le=512, description="hnswlib's M.")
    hnsw_ef_construction: _Positive = Field(default=200, description="hnswlib's search width while building.")
    hnsw_ef_search: _Positive = Field(default=200, description="hnswlib's search width while searching.")
    keep_builds: _Positive = Field(default=3, description="Earlier builds that are kept for prime rollback.")
    max_ndcg_drop: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="How much lower NDCG@5 of the default system may be than that of the served build, over the queries, for a "
        "build to be published; 0.02, say. Default: whatever it is.",
    )


class RetrievalSettings(_Group):
    """How queries are answered."""

    arms: tuple[Arm, ...] = Field(
        default=("document_bm25", "section_bm25", "metadata_vector"),
        min_length=1,
        description="Rankings fused in stage 1.",
    )
    arm_depth: _Positive = Field(default=100, description="Documents that each arm contributes.")
    rrf_k: _Positive = Field(default=60, description="Constant of reciprocal rank fusion.")
    n_candidates: _Positive = Field(default=30, description="Documents handed to stage 2.")
    scorer: Scorer | None = Field(
        default=None, description="late_interaction, cross_encoder or none. Default: as the profile says."
    )
    rerank_budget: _Count = Field(
        default=48, description="Sections scored in stage 2; 0 scores all of the candidates."
    )
    scorer_weight: _Threshold = Field(
        default=1.0, description="Of late interaction in the score of a section, where section BM25 has 1."
    )
    stage1_weight: _Threshold = Field(
        default=0.5,
        description="Of the score of the section's document in stage 1, likewise; each section of a document has an equal share.",
    )
    windows_per_section: _Count = Field(
        default=4,
        description="Windows of a long section that late interaction scores, those that share most with the query; 0: all.",
    )
    top_k: _Positive = Field(default=5, description="Sections returned.")
    time_limit_ms: _Count = Field(
        default=0,
        description="Milliseconds after which a search scores no further sections; 0: no limit. Evaluation has none.",
    )
    section_text: SectionText = Field(
        default="restructured",
        description="What the scorer reads of a rewritten section: raw, restructured, or both (the better score counts).",
    )


class PriceSettings(_Group):
    """What a model costs, per million tokens."""

    prompt: _Factor = Field(ge=0, description="Tokens read.")
    completion: _Factor = Field(ge=0, description="Tokens generated.")
    currency: str = Field(default="USD", max_length=8, description="Shown beside amounts.")


class LlmSettings(_Group):
    """The language model: any endpoint that speaks OpenAI's chat completions."""

    base_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s@?#]+$",
        description="For example https://api.deepseek.com/v1 or http://127.0.0.1:8080/v1, without credentials.",
    )
    api_key: SecretStr = Field(
        default=SecretStr(""), description="Better as PRIME_LLM__API_KEY than in a file; empty for none."
    )
    model: str = Field(default="", description="As the endpoint names it.")
    concurrency: int = Field(default=8, ge=1, le=1_000, description="Calls at once, at most.")
    timeout_s: _Factor = Field(default=120.0, gt=0, description="For one attempt.")
    deadline_s: _Factor = Field(default=600.0, gt=0, description="For all attempts of a call.")
    max_tokens: int | None = Field(
        default=None, ge=1, description="Budget of a run in tokens, read and generated together."
    )
    max_cost: _Factor | None = Field(
        default=None, ge=0, description="Budget of a run in the currency of the model's price."
    )
    prices: Mapping[str, PriceSettings] = Field(
        default={}, description='By model: [llm.prices."deepseek-chat"] prompt = 0.28, completion = 0.42'
    )

    @field_validator("api_key")
    @classmethod
    def _can_be_sent(cls, key: SecretStr) -> SecretStr:
        text = key.get_secret_value().strip()
        if not (text.isascii() and text.isprintable()):
            raise ValueError(
                "it holds control characters or others beyond ASCII, as no key does: copy it anew"
            )
        return SecretStr(text)

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.base_url and not self.model:
            raise ValueError("base_url is set, but model is not: name the model")
        if self.max_cost is not None and self.price is None:
            raise ValueError(f"max_cost needs the price of {self.model!r}: set it in llm.prices")
        return self

    @property
    def price(self) -> Prices | None:
        """What the model costs; None if it is not in the table."""
        price = self.prices.get(self.model)
        return Prices(price.prompt, price.completion, price.currency) if price else None


class RestructuringSettings(_Group):
    """How sections are rewritten in full mode."""

    method: Method | None = Field(
        default=None,
        description="extractive or llm. Default: llm where llm.base_url is set, else extractive.",
    )
    lexical_source: LexicalSource | None = Field(
        default=None,
        description="Which text BM25 sees in full mode: raw, restructured or both. Default: both; restructured in the "
        "paper profile.",
    )
    prompt: PromptMode = Field(
        default="full", description="full, or one axis alone: explication, compression."
    )
    repair: bool = Field(default=True, description="Give a refused rewrite a second attempt.")
    max_section_tokens: _Positive = Field(default=4000, description="Longer sections are asked for in parts.")
    room_tokens: _Count = Field(
        default=256,
        description="What an answer may be longer than 1.5 times its section; models that reason need thousands.",
    )
    entities: Literal["auto", "spacy", "rule"] = Field(
        default="auto",
        description="How the gate finds names: spacy needs the extra fidelity; auto takes it if there.",
    )
    router: Mapping[str, _Threshold] = Field(
        default={},
        description="From where on a section stays raw: thresholds of restructuring/router.py by name.",
    )
    gate: Mapping[str, _Threshold] = Field(
        default={},
        description="What a rewrite must pass: thresholds of restructuring/rules/options.py by name.",
    )

    @model_validator(mode="after")
    def _names_thresholds(self) -> Self:
        _replaced(RouterOptions(), self.router)
        _replaced(GateOptions(), self.gate)
        return self

    @property
    def router_options(self) -> RouterOptions:
        """As the router takes them."""
        return _replaced(RouterOptions(), self.router)

    @property
    def gate_options(self) -> GateOptions:
        """As the gate takes them."""
        return _replaced(GateOptions(), self.gate)


class AnswerSettings(_Group):
    """How answers are generated by prime answer, at the endpoint of the llm group."""

    model: str = Field(default="", description="As the endpoint names it. Default: that of the llm group.")
    max_context_tokens: _Positive = Field(default=8000, description="For the sections that are read.")
    max_answer_tokens: _Positive = Field(
        default=512, description="The most tokens generated; models that reason need thousands."
    )


class ServeSettings(_Group):
    """The query service."""

    token: SecretStr = Field(
        default=SecretStr(""),
        description="What callers of prime serve must send; better as PRIME_SERVE__TOKEN than in a file; empty for none. At "
        "least 16 characters.",
    )

    @field_validator("token")
    @classmethod
    def _is_strong(cls, token: SecretStr) -> SecretStr:
        text = token.get_secret_value().strip()
        if not (text.isascii() and text.isprintable()) or " " in text:
            raise ValueError("it holds blanks, control characters or others beyond ASCII: make another")
        if 0 < len(text) < 16:
            raise ValueError(
                'it has less than 16 characters: take what python -c "import secrets; '
                'print(secrets.token_urlsafe(32))" prints'
            )
        return SecretStr(text)


class Settings(BaseSettings):
    """Everything that can be set."""

    model_config = SettingsConfigDict(
        env_prefix="PRIME_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        env_ignore_empty=True,
        hide_input_in_errors=True,  # a traceback would show the key
    )

    home: Path = Field(default=Path(".prime"), description="Folder for everything that is written.")
    cache_home: Path | None = Field(
        default=None, description="Home whose caches are shared. Default: home itself."
    )
    extends: Path | None = Field(
        default=None,
        description="Another settings file, whose values stand below those of the file that names it. What it says its own "
        "home is for is not inherited: home, cache_home, corpus, queries, evaluate, mode and publish_to.",
    )
    corpus: str | None = Field(
        default=None,
        description="Folder of documents, BEIR folder or JSONL file, QASPER JSON file, or installed: for the "
        "documentation of the installed Python distributions.",
    )
    queries: str | None = Field(
        default=None,
        description="Queries and judgements that a refresh evaluates: BEIR folder, QASPER file, bright:<folder>#<task>, "
        "JSONL, CSV or TSV, installed:, or known-items: for queries made from the corpus itself.",
    )
    publish_to: str | None = Field(
        default=None,
        pattern=r"^([a-z][a-z0-9+.-]*://[^\s?#]+)?$",
        description="Folder in object storage to which each refresh sends the served index, the warehouse and the report, for prime "
        "pull: any address of fsspec, such as s3://bucket/prime or file:///mnt/share/prime. One home for an address. Default: none.",
    )
    mode: Mode = Field(
        default="offline",
        description="offline indexes raw sections; full restructures them first, and serves that index; auto does what the "
        "corpus profile recommends: either of them, or vectors of full texts where metadata will not help.",
    )
    profile: Profile = Field(
        default="embedded", description="embedded needs no network; paper needs the model hub."
    )
    partitioning: Partitioning = Field(
        default="document",
        description="What a partition in Dagster is: a document, or, for corpora of over about 10,000, one of 256 buckets of "
        "documents. Nothing is made again when this changes.",
    )
    embedder: str | None = Field(
        default=None, description="Model name or local folder. Default: as the profile says."
    )
    embedder_backend: Literal["torch", "onnx", "int8"] = Field(
        default="torch",
        description="torch; onnx: the same vectors, quicker on processors; or int8: quicker still, with slightly other "
        "vectors. The latter two need the extra onnx.",
    )
    cross_encoder: str = Field(
        default="cross-encoder/ms-marco-MiniLM-L-6-v2", description="Model name or local folder."
    )
    chunk_embedder: str | None = Field(
        default=None,
        description="Name or folder of the second embedder of prime reproduce, for bge-m3-chunk-256. Default: none; BAAI/bge-m3 "
        "in the paper profile.",
    )
    nli_model: str | None = Field(
        default=None,
        description="Model name or local folder of a classifier of contradictions, for the fidelity audit. Default: none; "
        f"{PAPER_NLI_MODEL} in the paper profile.",
    )
    token_vector_cache_bytes: int = Field(
        default=1 << 30, ge=1 << 20, le=1 << 50, description="Limit of the token vector cache."
    )
    token_vector_memory_bytes: int = Field(
        default=1 << 28, ge=0, le=1 << 50, description="Of the token vectors used last, what stays in memory."
    )
    evaluate: tuple[System, ...] = Field(
        default=("bm25", "stage1", "default"),
        description="Systems that a refresh evaluates where queries are set.",
    )
    metadata: MetadataSettings = MetadataSettings()
    index: IndexSettings = IndexSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    llm: LlmSettings = LlmSettings()
    restructuring: RestructuringSettings = RestructuringSettings()
    answers: AnswerSettings = AnswerSettings()
    serve: ServeSettings = ServeSettings()

    @model_validator(mode="after")
    def _has_an_endpoint(self) -> Self:
        if self.restructuring.method == "llm" and not self.llm.base_url:
            raise ValueError("restructuring.method is llm, but llm.base_url is not set: name the endpoint")
        chosen = self.restructuring.method or self.llm.base_url
        if self.profile == "paper" and self.mode != "offline" and not chosen:
            raise ValueError(
                "the paper profile restructures by a language model: set llm.base_url and llm.model, or say "
                'restructuring.method = "extractive"'
            )
        return self

    @field_validator("publish_to")
    @classmethod
    def _without_password(cls, url: str | None) -> str | None:
        if url and holds_password(url):
            raise ValueError(str(PasswordInAddress()))
        return url or None

    @field_validator("corpus", "queries")
    @classmethod
    def _absolute(cls, location: str | None) -> str | None:
        return _absolute_location(location, Path()) if location else None

    @field_validator("cache_home", "extends")
    @classmethod
    def _absolute_place(cls, place: Path | None) -> Path | None:
        return None if place is None else Path(_absolute_path(str(place), Path()))

    @field_validator("embedder", "cross_encoder", "nli_model", "chunk_embedder")
    @classmethod
    def _usable_name(cls, model: str | None) -> str | None:
        if model is not None:
            _checked(_expanded(model))
        return model

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Options over variables over files; the files come in through the options, see :func:`load_settings`."""
        del dotenv_settings, file_secret_settings
        options = dict(init_settings())
        files = options.pop("files", {})
        return (
            InitSettingsSource(settings_cls, options),
            env_settings,
            InitSettingsSource(settings_cls, files),
        )

    @property
    def stored(self) -> Home:
        """The home folder's layout."""
        home = Home.at(self.home)
        return home if self.cache_home is None else Home(home.root, self.cache_home.absolute())

    @property
    def corpus_location(self) -> str:
        """The corpus.

        Raises:
            CorpusNotSet: None is set.
        """
        if not self.corpus:
            raise CorpusNotSet
        return self.corpus

    @property
    def embedder_model(self) -> str:
        """Name or folder of the embedder."""
        return self.embedder or _EMBEDDERS[self.profile]

    @property
    def contradiction_model(self) -> str | None:
        """Name or folder of the NLI model; None where contradictions are not looked for."""
        return self.nli_model or _NLI_MODELS[self.profile]

    @property
    def chunk_embedder_model(self) -> str | None:
        """Name or folder of the experiment's second embedder; None where it has none."""
        return self.chunk_embedder or _CHUNK_EMBEDDERS[self.profile]

    @property
    def answer_options(self) -> AnswerOptions:
        """As the answer generator takes them."""
        chosen = self.answers.model_dump()
        return AnswerOptions(
            **{**chosen, "base_url": self.llm.base_url or "", "model": chosen["model"] or self.llm.model}
        )

    @property
    def method(self) -> Method:
        """How sections are rewritten in full mode."""
        return self.restructuring.method or ("llm" if self.llm.base_url else "extractive")

    @property
    def lexical_source(self) -> LexicalSource:
        """Which text BM25 sees in full mode."""
        by_profile: LexicalSource = "restructured" if self.profile == "paper" else "both"
        return self.restructuring.lexical_source or by_profile

    @property
    def rewriting_options(self) -> RewritingOptions:
        """As the rewriter takes them."""
        chosen = self.restructuring
        return RewritingOptions(
            base_url=self.llm.base_url or "",
            model=self.llm.model,
            max_section_tokens=chosen.max_section_tokens,
            room_tokens=chosen.room_tokens,
            repair=chosen.repair,
            router=chosen.router_options,
        )

    @property
    def vector_options(self) -> VectorOptions:
        """As the vector index takes them."""
        by_profile: Literal["auto", "hnsw"] = "hnsw" if self.profile == "paper" else "auto"
        return VectorOptions(
            search=self.index.vector_search or by_profile,
            exact_limit=self.index.exact_limit,
            m=self.index.hnsw_m,
            ef_construction=self.index.hnsw_ef_construction,
            ef_search=self.index.hnsw_ef_search,
        )

    @property
    def retrieval_options(self) -> RetrievalOptions:
        """As the retriever takes them."""
        chosen = self.retrieval.model_dump()
        chosen["scorer"] = chosen["scorer"] or _SCORERS[self.profile]
        return RetrievalOptions(**chosen)


def load_settings(options: Mapping[str, Any] | None = None) -> Settings:
    """The settings in force.

    Args:
        options: What the caller was told explicitly, by field name; None values count as not told.

    Raises:
        SettingsError: A value is out of range, a name unknown, a file is no TOML, or one that is extended is missing.
    """
    told = {name: value for name, value in (options or {}).items() if value is not None}
    here = _read_file(Path(FILE_NAME))
    named = told.get("home") or os.environ.get("PRIME_HOME") or here.get("home")
    home = _named_path("home", named if isinstance(named, str | Path) else ".prime")
    named = told.get("extends") or os.environ.get("PRIME_EXTENDS")
    extends = _named_path("extends", named) if isinstance(named, str | Path) else None
    files = _read_files(here, home, extends)
    if files.own.get("home", str(home)) != str(home):
        raise SettingsError(
            f"{home / FILE_NAME} is the file of this home and cannot name another: remove home"
        )
    try:
        return Settings(**{**told, "files": files.merged}).model_copy(update={"home": home})
    except ValidationError as error:
        raise SettingsError(_explain(error, files.paths)) from error
    except UnparsableVariable as error:
        raise SettingsError(f'{error}: lists and groups are written as JSON, such as ["a", "b"]') from error
    except RecursionError as error:
        raise SettingsError("a PRIME_* variable is nested too deeply: write plain JSON") from error


def remember(settings: Settings) -> None:
    """Write what this home is for into its own ``prime.toml``, keeping whatever else is there, comments included.

    That is its corpus, queries, caches, the file that it extends, and the mode, profile and evaluated systems if they are
    not those that it would have anyway: the default ones, or of the profile the one of the file that it extends. The text
    that BM25 sees in full mode is written if no file says the same, since another text would be another index. So
    ``prime search``, ``prime ui`` and a scheduled refresh find what ``prime refresh --corpus DIR`` was told. Nothing else
    of the settings is copied, a key least of all.

    Raises:
        SettingsError: A path is not UTF-8, or the file is no TOML.
        StoreUnavailable: The file cannot be written.
    """
    path = settings.stored.settings_file
    files = _read_files(_read_file(Path(FILE_NAME)), path.parent, settings.extends)
    facts = {
        "extends": None if settings.extends is None else str(settings.extends),
        "corpus": settings.corpus,
        "queries": settings.queries,
        "cache_home": None if settings.cache_home is None else str(settings.cache_home.absolute()),
        "mode": settings.mode,
        "profile": settings.profile,
        "evaluate": list(settings.evaluate),
    }
    anyway = {
        "mode": _default("mode"),
        "profile": _default("profile"),
        "evaluate": list(_default("evaluate")),
        **files.inherited,
        **files.own,
    }
    news: dict[str, Any] = {
        name: value for name, value in facts.items() if value is not None and value != anyway.get(name)
    }
    lexical_source = settings.restructuring.lexical_source
    if lexical_source and lexical_source != files.merged.get("restructuring", {}).get("lexical_source"):
        news["restructuring"] = {"lexical_source": lexical_source}
    if news:
        _write_into(path, news)


def _write_into(path: Path, values: Mapping[str, Any]) -> None:
    import tomlkit

    try:
        document = tomlkit.parse(path.read_text(encoding="utf-8-sig") if path.is_file() else "")
        for name, value in values.items():
            if isinstance(value, Mapping):
                document.setdefault(name, {}).update(value)
            else:
                document[name] = value
        write_text(path, document.as_string())
    except (ValueError, RecursionError) as error:  # a path that is no text, or TOML that only tomllib reads
        raise SettingsError(f"{path} cannot be brought up to date: {error}") from error


def _named_path(setting: str, named: str | Path) -> Path:
    """A path that must be known before all settings are validated."""
    try:
        return Path(_absolute_path(str(named), Path()))
    except ValueError as error:
        raise SettingsError(f"{setting}: {error} (found {named!r})") from error


def _default(name: str) -> Any:
    return Settings.model_fields[name].default


@dataclass(frozen=True, slots=True)
class _Files:
    """What the settings files say.

    Attributes:
        below: The one in the working directory, over those that it extends.
        inherited: Those that the home's own extends.
        own: The home's own.
        paths: Where all of them lie, or would lie.
    """

    below: Mapping[str, Any]
    inherited: Mapping[str, Any]
    own: Mapping[str, Any]
    paths: tuple[Path, ...]

    @property
    def merged(self) -> dict[str, Any]:
        """All of them, each over those before."""
        return reduce(_merged, (self.below, self.inherited, self.own), {})


def _read_files(here: Mapping[str, Any], home: Path, extends: Path | None) -> _Files:
    """All files that count for a home.

    Args:
        here: What the one in the working directory says.
        home: The home.
        extends: What its own is told to extend by an option or a variable, whatever it says itself.
    """
    here_path, own_path = Path(FILE_NAME), home / FILE_NAME
    own = _read_file(own_path)
    told = {} if extends is None else {"extends": str(extends)}
    below, inherited = _extended(here_path, here), _extended(own_path, {**own, **told})
    # What the working directory's file extends was for that file, and is not what the home's own does.
    here = {name: value for name, value in here.items() if name != "extends"}
    return _Files(
        below=_merged(_together(below), here),
        inherited=_together(inherited),
        own=own,
        paths=(here_path, *below, own_path, *inherited),
    )


def _extended(path: Path, values: Mapping[str, Any]) -> dict[Path, dict[str, Any]]:
    """The files that a file extends, one after the other, with what is inherited of each; the nearest first.

    Raises:
        SettingsError: One of them is missing, cannot be read, or is among those that extend it.
    """
    found: dict[Path, dict[str, Any]] = {}
    passed: set[str] = set()
    while "extends" in values:
        named = values["extends"]
        if not isinstance(named, str) or not named:
            raise SettingsError(f"{path}: extends: expected the path of a settings file (found {named!r})")
        passed.add(os.path.realpath(path))
        if os.path.realpath(named) in passed:
            raise SettingsError(f"{path} extends {named}, which leads back to itself: remove one extends")
        values = _read_file(Path(named), extended_by=path)
        path = Path(named)
        found[path] = {name: value for name, value in values.items() if name not in _NOT_INHERITED}
    return found


def _together(found: Mapping[Path, dict[str, Any]]) -> dict[str, Any]:
    return reduce(_merged, reversed(tuple(found.values())), {})


def _read_file(path: Path, extended_by: Path | None = None) -> dict[str, Any]:
    """A settings file, with its relative paths made absolute: they are relative to the file.

    One that is not there says nothing, unless another one counts on it.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        if extended_by is None:
            return {}
        raise SettingsError(
            f"{extended_by} is to extend {path}, which is not there: settings would silently be others. Put the file "
            "back, or correct or remove extends"
        ) from None
    except RecursionError as error:
        raise SettingsError(f"{path} cannot be read: it is nested too deeply") from error
    except (OSError, ValueError) as error:  # the latter for wrong bytes, wrong TOML, and numbers without end
        raise SettingsError(f"{path} cannot be read: {error}") from error
    for name, value in values.items():
        # By os.path, which calls an endless name no folder, where pathlib raises.
        is_folder = name in _MODELS and isinstance(value, str) and os.path.isdir(path.parent / value)  # noqa: PTH112
        if is_folder or (name in _PATHS and value and isinstance(value, str)):
            try:
                values[name] = _absolute_location(value, path.parent)
            except ValueError as error:
                raise SettingsError(f"{path}: {name}: {error} (found {value!r})") from error
    return values


def _absolute_location(location: str, folder: Path) -> str:
    """A path made absolute, that of ``bright:`` too; ``installed:`` and ``known-items:`` as they are. ValueError if it can be no path."""
    if location.startswith(BRIGHT):
        found = bright_location(location)
        return str(replace(found, folder=_absolute_path(found.folder, folder)))
    return location if location in {INSTALLED, KNOWN_ITEMS} else _absolute_path(location, folder)


def _absolute_path(location: str, folder: Path) -> str:
    path = _expanded(location)
    try:
        return _checked(path if path.is_absolute() else folder.absolute() / path)
    except FileNotFoundError:
        raise ValueError("the working directory is gone: give an absolute path") from None


def _expanded(location: str) -> Path:
    try:
        return Path(location).expanduser()
    except RuntimeError:
        raise ValueError("there is no such user: write the folder's full path") from None


def _checked(path: Path) -> str:
    """The path as text, after making sure that every file system and library takes it (but for its length)."""
    text = str(path)
    if "\0" in text:
        raise ValueError("a path cannot hold a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a path must be valid UTF-8: rename the folder") from None
    return text


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        both_groups = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = _merged(merged[name], value) if both_groups else value
    return merged


def _explain(error: ValidationError, paths: Iterable[Path]) -> str:
    faults = [_fault(fault["loc"], fault["msg"], fault["input"]) for fault in error.errors()]
    files = [path.absolute() for path in paths if path.is_file()]
    origins = ", ".join(["options", "PRIME_* variables", *map(str, dict.fromkeys(files))])
    return f"settings are not valid: {'; '.join(faults)}. They come from {origins}"


def _fault(location: tuple[int | str, ...], message: str, found: object) -> str:
    # Of these nothing is repeated: a mistyped name of a group with secrets may well hold the key, an address a password.
    is_secret = not location or location[0] in {"llm", "serve", "publish_to"}
    shown = "" if is_secret else f" (found {found!r})"
    return f"{'.'.join(map(str, location)) or 'settings'}: {message.removeprefix('Value error, ')}{shown}"
