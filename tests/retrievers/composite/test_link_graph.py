"""Links between passages, and the scores of linked pairs, by hand."""

import math
import random
from pathlib import Path

import pytest

from nodekin.nodegraph import Document, EntityExtractor, NodeGraph
from nodekin.retrievers.composite.link_graph import (
    IN_TITLE,
    UNTITLED,
    LinkGraph,
    LinkIndex,
    LinkMatrix,
)
from nodekin.retrievers.similarities.bm25 import DEFAULT_ANALYZER, open_postings


def strengths(matrix: LinkMatrix) -> list[dict[str, float]]:
    """Return each seed's links by passage."""
    return [
        {name: float(s) for name, s in zip(matrix.passages, row, strict=True) if s}
        for row in matrix.strengths
    ]


def mention_graph(store: Path | None = None) -> NodeGraph:
    graph = NodeGraph(store=store, progress=False)
    graph.create_node_group("entity", EntityExtractor())
    return graph


def link_index(graph: NodeGraph) -> LinkIndex:
    index = LinkIndex.open(graph, "entity")
    assert index is not None
    index.sync()
    return index


def test_entity_in_title_connects_more_strongly() -> None:
    graph = mention_graph()
    texts = {"a": "In Oslo.", "b": "A town.", "c": "A street.", "d": "To Oslo."}
    titles = {"b": "Oslo", "c": "Oslo Road"}
    graph.add([Document(text, {"title": titles.get(i, "")}, id=i) for i, text in texts.items()])
    passages = open_postings(graph, "ROOT", DEFAULT_ANALYZER)
    with graph.reader.reading("ROOT", "entity"):
        passages.sync()
        index = link_index(graph)
        links = LinkGraph(graph, passages, None, index)
        from_a, from_c = strengths(links.connections(["a", "c"]))
    rarity = math.log(5 / 4) / math.log(5)
    shares = {"b": 1.0, "c": IN_TITLE, "d": UNTITLED}
    assert from_a == {i: pytest.approx(share * rarity) for i, share in shares.items()}
    assert from_c == {i: pytest.approx(max(IN_TITLE, shares.get(i, 0)) * rarity) for i in "abd"}


NAMES = ["Green Tea", "Tea", "Henrik Ibsen", "Ibsen", "The Bank of China", "《红楼梦》", "红楼梦"]
WORDS = ["green", "tea", "of", "in", "bank", "and", "The", "China", "5", "红楼"]


def document(rng: random.Random, i: str) -> Document:
    lines = (" ".join(rng.choices(NAMES + WORDS, k=rng.randrange(2, 6))) + "." for _ in range(3))
    return Document(" ".join(lines), {"title": rng.choice(["", "", *NAMES])}, id=i)


def shown(graph: NodeGraph) -> dict[str, object]:
    """Return the data of a graph's link index about its passages."""
    with graph.reader.reading("ROOT", "entity"):
        index = link_index(graph)
        ids = graph.reader.ids("ROOT")
        order = {i: at for at, i in enumerate(ids)}
        return {
            i: (
                sorted((*e[:5], (order[e.passages[0]], *e.rank[1:])) for e in index.entities([i])),
                index.title(i),
                [[e[:4] for e in index.named(f"x {name}?")] for name in NAMES],
            )
            for i in ids
        }


@pytest.mark.parametrize("seed", range(8))
def test_link_index_after_changes_equals_new_index(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    graph = mention_graph(tmp_path / "graph")
    for _ in range(10):
        i = rng.choice("abcdefgh")
        existing = {node.id for node in graph.nodes("ROOT")}
        if i in existing and rng.random() < 0.4:
            graph.remove(i)
        elif i in existing:
            graph.update([document(rng, i)])
        else:
            graph.add([document(rng, i), document(rng, f"{i}{i}")])
        new = mention_graph()
        new.add([Document(n.text, n.metadata, id=n.id) for n in graph.nodes("ROOT")])
        assert shown(graph) == shown(new)
        if rng.random() < 0.2:
            with graph.reader.reading("entity"):
                link_index(graph).save()
            graph.close()
            graph = mention_graph(tmp_path / "graph")
    graph.close()
