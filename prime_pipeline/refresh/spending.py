"""What language models cost beside a refresh, written into the ledger as a run of its own."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

from prime_pipeline.llm.budget import Prices
from prime_pipeline.records import Spending
from prime_pipeline.storage.ledger import Ledger, LedgerLine, LedgerRun


def note_spending(
    ledger: Ledger,
    kind: str,
    strategy: str,
    label: str,
    spending: Mapping[str, Spending],
    prices: Prices | None,
) -> None:
    """Add a run.

    Args:
        ledger: Gets it.
        kind: What it was for; the beginning of its id.
        strategy: What determined it, so that all runs of it can be added up.
        label: The same for people.
        spending: By document id; what belongs to no document stands under an empty one.
        prices: Of the model; None if they are not known.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    run_id = f"{kind}-{uuid.uuid4()}"
    ledger.open_run(LedgerRun(run_id, now, strategy, label, None, None, None))
    for doc_id, spent in spending.items():
        cost = prices.cost(spent.prompt_tokens, spent.completion_tokens) if prices else None
        ledger.add(LedgerLine(run_id, doc_id, spent, cost))
