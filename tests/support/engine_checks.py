"""What every engine beside the store must find: what one finds that compares all in memory."""

from __future__ import annotations

import random

import numpy as np
from memory_engine import MemoryEngine

from nodekin.adapters.engines.index_engine import EngineRow, IndexEngine, RowSelection
from nodekin.nodegraph.search_tables import ValueMatch


def rows(count: int, dimension: int = 8) -> list[EngineRow]:
    vectors = np.random.default_rng(1).normal(size=(count, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [
        EngineRow(f"{i:032x}", f"n{i}", i << 32, [1 + i % 5, 10 + i % 3, 100 + i], vector)
        for i, vector in enumerate(vectors)
    ]


def random_match(chance: random.Random, depth: int = 3) -> ValueMatch:
    join = chance.choice(["and", "or", "not", "values"] if depth else ["values"])
    if join == "values":
        pools = [range(1, 7), range(10, 14), range(100, 400)]
        pool = chance.choice(pools)
        numbers = chance.sample(pool, chance.randrange(min(len(pool), chance.choice([4, 300]))))
        return ValueMatch("values", (), tuple(numbers))
    count = 1 if join == "not" else chance.randrange(1, 4)
    return ValueMatch(join, tuple(random_match(chance, depth - 1) for _ in range(count)))  # type: ignore[arg-type]


def same_as_memory(engine: IndexEngine, name: str, rounds: int, *, has_hnsw: bool = False) -> None:
    """Compare what is found under random conditions with an engine that compares all."""
    memory, chance = MemoryEngine(), random.Random(7)
    for each in (engine, memory):
        each.create(name, 8, has_hnsw=has_hnsw)
        each.put(name, rows(300))
        each.delete(name, [f"{i:032x}" for i in range(0, 300, 9)] + ["f" * 32])
        each.put(name, [row._replace(value_ids=[5, 999]) for row in rows(3)])
    for query in rows(rounds):
        match = chance.choice([None, random_match(chance)])
        without = [f"{i:032x}" for i in chance.sample(range(300), chance.choice([0, 20]))]
        assert engine.count(name, match, 0) == memory.count(name, match, 0), match
        found, expected = (
            each.nearest(name, query.vector, 10, RowSelection(match, without, 0), False)
            for each in (engine, memory)
        )
        exact = engine.nearest(name, query.vector, 10, RowSelection(match, without, 0), True)
        for given in (found, exact):
            assert given.ids == expected.ids, match
            assert given.orders.tolist() == expected.orders.tolist()
            assert given.vectors.tobytes() == expected.vectors.tobytes()
        every = [row for part in engine.rows(name, match, 0) for row in part]
        all_of_memory = [row for part in memory.rows(name, match, 0) for row in part]
        assert sorted((r.key, r.id, r.order, *r.value_ids) for r in every) == sorted(
            (r.key, r.id, r.order, *r.value_ids) for r in all_of_memory
        )
