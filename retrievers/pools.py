"""Which indexes are searched together: all graphs' texts, or their embeddings of one key."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..nodegraph import NodeGraph
from ..nodegraph.errors import nearest
from .protocols import Similarity

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pool:
    """Name graphs that are searched as one, by one embedding or by their texts.

    Attributes:
        key: The embedding, None where texts are compared.
        places: Which of a retriever's graphs.
    """

    key: str | None
    places: tuple[int, ...]

    def of(self, graphs: Sequence[T]) -> list[T]:
        """Return the graphs that are searched."""
        return [graphs[place] for place in self.places]


def pools(
    similarity: Similarity, graphs: Sequence[NodeGraph], embed_keys: Sequence[str] | None
) -> list[Pool]:
    """Return the pools of a similarity: one for texts, one for each embedding.

    Without ``embed_keys`` every graph is searched by all its own embeddings.

    Raises:
        ValueError: If keys are given to a similarity of texts, or none at all, or a graph has no
            embeddings, or not these.
    """
    if similarity.mode == "text":
        if embed_keys is not None:
            raise ValueError(
                f"embed_keys={embed_keys!r} choose among embeddings, and similarity "
                f"{similarity.name!r} compares texts; leave them out"
            )
        return [Pool(None, tuple(range(len(graphs))))]
    known = [list(graph.embeddings.embedders) for graph in graphs]
    for graph, keys in zip(graphs, known, strict=True):
        if not keys:
            raise ValueError(
                f"similarity {similarity.name!r} compares embeddings, and {graph!r:.80} has none; "
                "give it a model: NodeGraph(..., embed=...)"
            )
    if embed_keys is None:
        asked = list(dict.fromkeys(key for keys in known for key in keys))
    else:
        asked = [embed_keys] if isinstance(embed_keys, str) else list(dict.fromkeys(embed_keys))
        _check_keys(asked, known)
    return [Pool(key, tuple(at for at, keys in enumerate(known) if key in keys)) for key in asked]


def _check_keys(asked: Sequence[str], known: Sequence[Sequence[str]]) -> None:
    if not asked:
        raise ValueError("embed_keys=[] names no embedding; leave it out to search all")
    for keys in known:
        for key in asked:
            if key not in keys:
                raise ValueError(
                    f"no embedding {key!r}; the graph has {nearest(str(key), keys)}: choose "
                    "embed_keys among them, or give it one: NodeGraph(..., embed={'key': model})"
                )


def check_cut_off(
    cut_off: float | Mapping[str, float] | None, keys: Sequence[str]
) -> float | dict[str, float] | None:
    """Return a cut-off as floats.

    Args:
        cut_off: A number for all, or one for each embedding key.
        keys: The keys that are searched; none where texts are compared.

    Raises:
        TypeError: If it is no number, or a dict where texts are compared.
        ValueError: If it is NaN, or for an embedding that is not searched.
    """
    if cut_off is None:
        return None
    if not isinstance(cut_off, Mapping) or not keys:
        return _check_number(cut_off, keys)
    for key in cut_off:
        if key not in keys:
            raise ValueError(
                f"similarity_cut_off has the key {key!r}; the embeddings that are searched are "
                f"{nearest(str(key), keys)}"
            )
    return {key: _check_number(number, keys) for key, number in cut_off.items()}


def _check_number(cut_off: object, keys: Sequence[str]) -> float:
    if isinstance(cut_off, bool) or not isinstance(cut_off, int | float):
        allowed = ", or a dict with one for each key" if keys else " for a similarity of texts"
        raise TypeError(f"similarity_cut_off is a number{allowed}, not {cut_off!r:.80}")
    if math.isnan(cut_off):
        raise ValueError("similarity_cut_off is NaN, which no score reaches; give a number")
    return float(cut_off)
