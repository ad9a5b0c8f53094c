"""What every engine that searches words must find: what one finds that adds up all sums."""

from __future__ import annotations

import random

import numpy as np
import pytest
from memory_engine import MemoryEngine

from nodekin.adapters.engines.index_engine import (
    MissingCollectionError,
    RowSelection,
    WordEngine,
    WordRow,
)
from nodekin.nodegraph.search_tables import ValueMatch

LARGEST = 2**32 - 2
"""The largest number that a term may have."""


def word_rows(count: int, chance: random.Random) -> list[WordRow]:
    """Return rows of a few of 40 terms, each with value_ids of three fields."""
    rows = []
    for i in range(count):
        terms = sorted({min(40, int(chance.expovariate(0.1)) + 1) for _ in range(12)})
        if i % 50 == 0:
            terms.append(LARGEST)
        impacts = [0.2 + 2 * chance.random() for _ in terms]
        rows.append(
            WordRow(
                f"{i:032x}",
                [1 + i % 5, 10 + i % 3, 100 + i],
                np.array(terms, np.int64),
                np.array(impacts),
            )
        )
    return rows


def word_match(chance: random.Random, depth: int = 2) -> ValueMatch | None:
    join = chance.choice(["and", "or", "not", "values", None] if depth else ["values"])
    if join is None:
        return None
    if join == "values":
        pool = chance.choice([range(1, 7), range(10, 14), range(100, 400)])
        return ValueMatch("values", (), tuple(chance.sample(pool, chance.randrange(3))))
    parts = [word_match(chance, depth - 1) for _ in range(1 if join == "not" else 2)]
    return ValueMatch(join, tuple(part or ValueMatch("values", (), (1, 2)) for part in parts))


def same_words_as_memory(engine: WordEngine, name: str, rounds: int) -> None:
    """Compare what is found for random queries; sums are those of 32-bit numbers at least."""
    memory, chance = MemoryEngine(words=True), random.Random(7)
    for each in (engine, memory):
        rows = word_rows(300, random.Random(1))
        each.create_words(name)
        each.create_words(name)
        each.put_words(name, rows)
        each.put_words(name, [row._replace(value_ids=[5, 999]) for row in rows[:3]])
        each.delete(name, [f"{i:032x}" for i in range(0, 300, 9)] + ["f" * 32])
    position = engine.set_version_token(name, "one")
    assert engine.version_token(name) == "one"
    for turn in range(rounds):
        numbers = chance.sample([*range(1, 42), 1_000_000, LARGEST], chance.randrange(1, 6))
        query = {number: 0.1 + 9 * chance.random() for number in numbers}
        match = word_match(chance)
        without = [f"{i:032x}" for i in chance.sample(range(300), chance.choice([0, 20]))]
        every = memory.search_words(name, query, None, RowSelection(match, without, 0))
        sums = dict(zip(every.keys, every.scores, strict=True))
        for limit in (1, 10, None):
            found = engine.search_words(name, query, limit, RowSelection(match, without, position))
            assert len({*found.keys}) == len(found.keys) == len(found.scores)
            assert {*found.keys} <= {*sums}, (turn, limit)
            assert len(found.keys) == len(sums if limit is None else every.keys[:limit])
            if limit is None:
                continue
            lowest = min(found.scores, default=0.0) * engine.word_slack * (1 + 1e-5)
            others = [sums[key] for key in {*sums}.difference(found.keys)]
            assert max(others, default=0.0) <= lowest, (turn, limit)
    engine.drop(name)
    assert engine.version_token(name) is None
    with pytest.raises(MissingCollectionError):
        engine.search_words(name, {1: 1.0}, 3, RowSelection())
