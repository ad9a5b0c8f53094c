"""Vectors in 8 bits: a first comparison by them finds the same as comparing all vectors."""

import os
import subprocess
import sys

import numpy as np
import pytest

from nodekin.retrievers.indexes.nearest_vectors import nearest, unit
from nodekin.retrievers.indexes.vector_codes import VectorCodes

pytest.importorskip("faiss")

COUNT = 6_000


def vectors_of(kind: str, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((count, 48)).astype(np.float32)
    if kind == "offset":  # as of models whose vectors all have a few large numbers
        vectors[:, :3] += 12
    elif kind == "copies":
        vectors = vectors[rng.integers(0, min(count, 40), count)]
    return unit(vectors)


def best(every: np.ndarray, query: np.ndarray, limit: int, allowed: np.ndarray, codes=None):
    ((rows, scores),) = nearest(every, query[np.newaxis], limit, allowed, None, codes)
    order = np.lexsort((rows, -scores))[:limit]
    return rows[order].tolist(), scores[order].tolist()


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("kind", ["even", "offset", "copies"])
def test_codes_find_the_same_as_all_vectors(kind: str, share: float) -> None:
    every = vectors_of(kind, COUNT, 1)
    allowed = np.random.default_rng(2).random(COUNT) < share
    codes = VectorCodes(every[: COUNT - 500])  # the others were added later
    for query in vectors_of(kind, 30, 3):
        for limit in (1, 10, 100):
            expected = best(every, query, limit, allowed)
            assert best(every, query, limit, allowed, codes) == expected


@pytest.mark.parametrize("dimension", [1, 7, 1_000])
def test_codes_of_any_dimension_find_the_same(dimension: int) -> None:
    every = unit(np.random.default_rng(1).standard_normal((500, dimension)))
    allowed = np.ones(500, np.bool_)
    codes = VectorCodes(every)
    for query in every[:20]:
        assert best(every, query, 5, allowed, codes) == best(every, query, 5, allowed)


def test_vector_unlike_all_others_is_found() -> None:
    every = vectors_of("even", 41_000, 1)
    every[1] = 0
    every[1, 5] = 1  # not in the sample, which has every third row
    codes = VectorCodes(every)
    allowed = np.ones(len(every), np.bool_)
    assert best(every, every[1], 1, allowed, codes)[0] == [1]


PROGRAM = """
import os
import numpy as np
from nodekin.retrievers.indexes.nearest_vectors import nearest, unit
from nodekin.retrievers.indexes.vector_codes import VectorCodes
every = unit(np.random.default_rng(1).standard_normal((2_000, 32)))
codes = VectorCodes(every)
def search():
    ((rows, _),) = nearest(every, every[:1], 5, np.ones(2_000, bool), None, codes)
    assert 0 in rows
search()
child = os.fork()
search()
VectorCodes(every)
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_forked_process_searches_codes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
