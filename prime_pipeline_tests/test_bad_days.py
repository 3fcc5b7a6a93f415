"""Processes killed at any place: what is served is the state before or the state after, and the next run heals it."""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from pathlib import Path

from prime_pipeline.llm.reply_cache import ReplyCache
from prime_pipeline.storage.ledger import Ledger
from prime_pipeline.storage.warehouse import warehouse_counts, warehouse_fingerprint
from prime_pipeline_tests.bad_day import (
    advance,
    bench_at,
    check_databases,
    publish_warehouse,
    state_of,
)
from prime_pipeline_tests.killing import killed_after, steps_of

N_KILLS = 110
N_KILLS_OF_THE_WAREHOUSE = 8


def test_a_process_killed_anywhere_leaves_the_old_state_or_the_new_one(tmp_path: Path) -> None:
    root, state = tmp_path / "home", 0
    advance(root, state)
    n_steps = steps_of(advance, Path(shutil.copytree(root, tmp_path / "measured")), 1)
    assert n_steps > 2_000
    generator = random.Random(0)
    was_killed, seen, begun = [], set(), {state}
    for n_kill in range(1, N_KILLS + 1):
        begun.add(n_kill)
        was_killed.append(killed_after(generator.randint(1, n_steps), advance, root, n_kill))
        found = state_of(root, (state, n_kill), begun)
        seen.add(found == n_kill)
        state = found
        if n_kill % 10 == 0:  # the others leave it to the next one, which is killed, too
            check_databases(root)
            advance(root, n_kill)
            state = state_of(root, (n_kill,), {n_kill})
            begun = {state}
    assert sum(was_killed) >= 100
    assert seen == {False, True}
    assert state_of(root, (N_KILLS,), {N_KILLS}) == N_KILLS
    assert not list((root / "indexes" / "offline" / "staging").glob("*"))
    with closing(ReplyCache(root / "cache" / "llm.sqlite")) as replies:
        assert replies.n_without_origin == 0
    with closing(Ledger(root / "ledger.sqlite")) as ledger:
        assert all(spent.calls == 1 for spent in ledger.totals().values())


def test_a_warehouse_is_the_old_snapshot_or_the_new_one(tmp_path: Path) -> None:
    root = tmp_path / "home"
    advance(root, 0)
    publish_warehouse(root)
    before = warehouse_fingerprint(root / "warehouse.duckdb")
    advance(root, 1)
    n_steps = steps_of(publish_warehouse, Path(shutil.copytree(root, tmp_path / "measured")))
    after = warehouse_fingerprint(tmp_path / "measured" / "warehouse.duckdb")
    generator, was_killed = random.Random(1), []
    for _ in range(N_KILLS_OF_THE_WAREHOUSE):
        was_killed.append(killed_after(generator.randint(1, n_steps), publish_warehouse, root))
        assert warehouse_fingerprint(root / "warehouse.duckdb") in {before, after}
        assert warehouse_counts(root / "warehouse.duckdb", ["metadata"]) == {"metadata": 11}
    assert any(was_killed)
    publish_warehouse(root)
    assert warehouse_fingerprint(root / "warehouse.duckdb") == after != before
    assert bench_at(root).home.remove_leftovers() == 0  # young ones stay: their process may be at work
