"""Which set-ups are tried: alternatives by name, and the set-up that a choice of them is."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from ....nodegraph.errors import nearest_names
from ..setups.setup_file import SetupFile

Choice: TypeAlias = Mapping[str, Any]
"""One value for each alternative of a space, by name."""

Table: TypeAlias = dict[str, Any]

DEPTH = 50
"""How many passages of each retriever are fused, as ``DefaultRetriever`` does."""


@dataclass(frozen=True, slots=True)
class Space:
    """Hold the alternatives that ``tune`` chooses from. The first of each is where it starts.

    A set-up answers with passages. It fuses their words, the words of smaller parts of them, and,
    where the graph has embeddings, vectors. Then it may follow links, rerank, and cut off.

    Args:
        chunk_size: How long a passage is at most, in tokens. 0 for whole documents.
        part_size: How long a part is at most, in tokens. 0 for sentences.
        part_weight: The weight of the words of parts, beside 1 for those of passages.
        k1: Of ``Bm25``.
        b: Of ``Bm25``.
        lift: What a passage scores by its parts, see ``Retriever``.
        mode: How rankings are fused, see ``fuse``.
        word_weight: What the weights of words are multiplied with, where there are vectors.
        vector_weight: The weight of vectors.
        vector_group: What is embedded: ``"parts"`` or ``"passages"``.
        links: Whether links are followed, see ``LinkRetriever``. Left alone where there are more
            than 2,000 documents.
        rerankers: Names of reranking models, ``""`` for none. None for all that there are.
        fetch: How many passages are reranked.
        near_duplicates: The threshold of ``NearDuplicateFilter``. 0 for none.
        max_tokens: Of ``TokenLimit``. 0 for no limit.
        relative_cut: Of the last reranker or filter, see ``cut_scores``. 0 for none.

    Raises:
        ValueError: If there is no alternative, or a value is out of range.

    Example:
        >>> Space(k1=[0.9, 1.2], b=[0.4]).k1
        (0.9, 1.2)
    """

    chunk_size: Sequence[int] = (320, 160, 640, 0)
    part_size: Sequence[int] = (0, 64, 128)
    part_weight: Sequence[float] = (1 / 3, 0.0, 1.0, 3.0)
    k1: Sequence[float] = (1.5, 0.6, 1.0, 2.0)
    b: Sequence[float] = (0.75, 0.25, 0.5, 1.0)
    lift: Sequence[str] = ("max", "sum")
    mode: Sequence[str] = ("relative", "rrf", "distribution")
    word_weight: Sequence[float] = (1.0, 0.0)
    vector_weight: Sequence[float] = (1.0, 0.0, 0.5, 2.0, 4.0)
    vector_group: Sequence[str] = ("parts", "passages")
    links: Sequence[bool] = (False, True)
    rerankers: Sequence[str] | None = None
    fetch: Sequence[int] = (24, 50)
    near_duplicates: Sequence[float] = (0.0, 0.8)
    max_tokens: Sequence[int] = (0,)
    relative_cut: Sequence[float] = (0.0,)

    def __post_init__(self) -> None:
        for name, values in self.axes().items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise ValueError(f"{name} is a list of alternatives, not {values!r:.80}")
            for value in values:
                _check(name, value)
            object.__setattr__(self, name, tuple(values))

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Space:
        """Return the space of a table, ``[space]`` in a file of set-ups.

        Raises:
            ValueError: If a name is unknown, or a value out of range.
        """
        names = [field.name for field in fields(cls)]
        for name in table:
            if name not in names:
                raise ValueError(f"[space] has no {name!r}; there is {nearest_names(name, names)}")
        return cls(**table)

    def axes(self) -> dict[str, Sequence[Any]]:
        """Return the alternatives by name, without rerankers where they are not named."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


_ALLOWED: Mapping[str, tuple[object, ...]] = {
    "lift": ("max", "sum", "mean"),
    "mode": ("relative", "rrf", "distribution", "concat"),
    "vector_group": ("parts", "passages"),
    "links": (True, False),
}


def _check(name: str, value: object) -> None:
    if name in _ALLOWED:
        if value not in _ALLOWED[name]:
            names = ", ".join(map(repr, _ALLOWED[name]))
            raise ValueError(f"{name} is one of {names}, not {value!r:.80}")
    elif name == "rerankers":
        if not isinstance(value, str):
            raise ValueError(f"rerankers are names of models, not {value!r:.80}")
    elif isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ValueError(f"{name} is a number, 0 or more, not {value!r:.80}")


def neighbours(choice: Choice, axes: Mapping[str, Sequence[Any]]) -> Iterator[Choice]:
    """Yield the choices that differ in one value, each alternative's first before the seconds."""
    maximum = max(map(len, axes.values()))
    for position in range(maximum):
        for name, values in axes.items():
            if position < len(values) and values[position] != choice[name]:
                yield {**choice, name: values[position]}


def drawn(choice: Choice, axes: Mapping[str, Sequence[Any]], dice: random.Random) -> Choice:
    """Return a choice of which some three values are resampled."""
    names = dice.sample(sorted(axes), min(3, len(axes)))
    return {**choice, **{name: dice.choice(list(axes[name])) for name in names}}


def compose(choice: Choice, embed_keys: Sequence[str], top_k: int) -> SetupFile | None:
    """Return the set-up that a choice is, alone in a file. None if nothing would be searched.

    Args:
        choice: A value for each alternative.
        embed_keys: The embeddings that vectors are of.
        top_k: How many results it returns.
    """
    groups: dict[str, Table] = {}
    passages = "ROOT"
    if size := choice["chunk_size"]:
        passages = f"passage {size}"
        groups[passages] = {"transform": "PassageSplitter", "chunk_size": size}
    parts = f"{passages} sentence"
    part: Table = {"transform": "split_sentences", "parent": passages}
    if size := choice["part_size"]:
        parts = f"{passages} part {size}"
        part = {
            "transform": "SentenceSplitter",
            "chunk_size": size,
            "chunk_overlap": 0,
            "parent": passages,
        }
    bm25 = {"name": "bm25", "k1": choice["k1"], "b": choice["b"]}
    words: Table = {"type": "Retriever", "group_name": passages, "similarity": bm25}
    smaller = {**words, "group_name": parts, "target": passages, "lift": choice["lift"]}
    weighted = [(words, choice["word_weight"])]
    weighted.append((smaller, choice["word_weight"] * choice["part_weight"]))
    embedded = {"parts": parts, "passages": passages}[choice["vector_group"]]
    for key in embed_keys:
        vectors = {**smaller, "group_name": embedded, "similarity": "cosine", "embed_keys": [key]}
        weighted.append((vectors, choice["vector_weight"]))
    weighted = [(retriever, float(weight)) for retriever, weight in weighted if weight]
    if not weighted:
        return None
    if any(retriever["group_name"] == parts for retriever, _ in weighted):
        groups[parts] = part
    table = _fused(weighted, choice["mode"])
    if choice["links"]:
        entities = f"{passages} entity"
        groups[entities] = {"transform": "EntityExtractor", "parent": passages}
        settings = {"k1": choice["k1"], "b": choice["b"]}
        table = {"type": "LinkRetriever", "inner": table, "via": entities, "bm25": settings}
        table["top_k"] = DEPTH
    for reranker in _rerankers(choice):
        table = {"type": "RerankRetriever", "inner": table, "reranker": reranker, "top_k": DEPTH}
        if reranker["name"] == "ModuleReranker":
            table["fetch"] = choice["fetch"]
    table["top_k"] = top_k
    return SetupFile({"tuned": table}, groups)


def embedded_groups(table: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return the groups of which a set-up compares vectors, with the keys of their embeddings."""
    inner = [*table.get("retrievers", ()), *([table["inner"]] if "inner" in table else [])]
    groups = {(table["group_name"], key) for key in table.get("embed_keys", ())}
    return groups.union(*map(embedded_groups, inner))


def _fused(weighted: Sequence[tuple[Table, float]], mode: str) -> Table:
    if len(weighted) == 1:
        return {**weighted[0][0], "top_k": DEPTH}
    return {
        "type": "FusionRetriever",
        "retrievers": [{**retriever, "top_k": DEPTH} for retriever, _ in weighted],
        "mode": mode,
        "weights": [round(weight, 4) for _, weight in weighted],
        "top_k": DEPTH,
    }


def _rerankers(choice: Choice) -> list[Table]:
    """Return the rerankers and filters of a choice, the innermost first."""
    tables: list[Table] = []
    if choice["near_duplicates"]:
        threshold = choice["near_duplicates"]
        tables.append({"name": "NearDuplicateFilter", "threshold": threshold})
    if choice["rerankers"]:
        tables.append({"name": "ModuleReranker", "model": choice["rerankers"]})
    if choice["max_tokens"]:
        tables.append({"name": "TokenLimit", "max_tokens": choice["max_tokens"]})
    if choice["relative_cut"] and tables:
        tables[-1]["relative_cut"] = choice["relative_cut"]
    return tables
