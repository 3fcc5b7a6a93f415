"""What assets say of themselves in the UI: tags to filter by, columns of tables, spending, and titles of documents as tags of runs."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import dagster as dg

from prime_pipeline.llm.budget import Prices
from prime_pipeline.records import Spending

COLUMN_SCHEMA: Final = "dagster/column_schema"
COLUMN_LINEAGE: Final = "dagster/column_lineage"
DOCUMENT_TAG: Final = "prime/document"
TITLE_TAG: Final = "prime/title"

Layer = Literal["corpus", "restructuring", "index", "evaluation", "delivery"]
"""What an asset is a part of, whatever its group: an index is in the group of its variant."""

_MAX_TAG_CHARACTERS: Final = 100
# Controls and blanks of any kind, what turns the direction of text, and halves of surrogate pairs, which no database takes.
_UNTAGGABLE: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")


def tags(layer: Layer, variant: str = "") -> dict[str, str]:
    """Tags of an asset; the variant where it is made for one only."""
    return {"prime/layer": layer, **({"prime/variant": variant} if variant else {})}


def columns(tables: Mapping[str, Mapping[str, str]]) -> dict[str, dg.TableSchema]:
    """Metadata that shows tables' columns with their types, each as ``table.column``."""
    found = [
        dg.TableColumn(f"{table}.{name}", kind)
        for table, kinds in tables.items()
        for name, kind in kinds.items()
    ]
    return {COLUMN_SCHEMA: dg.TableSchema(found)}


def column_lineage(
    made_of: Mapping[str, Iterable[tuple[dg.AssetKey, str]]],
) -> dict[str, dg.TableColumnLineage]:
    """Metadata that shows which columns of which assets a column is made of."""
    deps = {
        column: [dg.TableColumnDep(asset_key=key, column_name=name) for key, name in origins]
        for column, origins in made_of.items()
    }
    return {COLUMN_LINEAGE: dg.TableColumnLineage(deps)}


def spending_metadata(spending: Spending, price: Prices | None) -> dict[str, int | float]:
    """What language model calls came to, by the same names everywhere; money only where a price is known."""
    read, generated = spending.prompt_tokens, spending.completion_tokens
    money = {f"cost {price.currency}": round(price.cost(read, generated), 6)} if price else {}
    return {
        "calls": spending.calls,
        "cache hits": spending.cache_hits,
        "truncated answers": spending.truncated,
        "prompt tokens": read,
        "completion tokens": generated,
        "tokens": read + generated,
        **money,
    }


def tag_value(text: str) -> str:
    """A text of a document as the value of a tag: on one line, without what steers a terminal or page, cut at the end."""
    shown = _UNTAGGABLE.sub(" ", text).strip()
    return shown if len(shown) <= _MAX_TAG_CHARACTERS else shown[: _MAX_TAG_CHARACTERS - 1].rstrip() + "…"


def tag_run(context: dg.AssetExecutionContext, doc_id: str, title: str) -> None:
    """Have the list of runs name the document that a run is about; Dagster offers no hook for runs that its UI launches."""
    found: dict[str, Any] = {DOCUMENT_TAG: tag_value(doc_id), TITLE_TAG: tag_value(title)}
    context.instance.add_run_tags(context.run_id, {name: value for name, value in found.items() if value})
