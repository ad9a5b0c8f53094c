"""Names that passages have in common, also after changes, and the strengths of links."""

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from nodekin.nodegraph import Document, EntityExtractor, NodeGraph
from nodekin.retrievers.composite import link_index
from nodekin.retrievers.composite.link_index import LinkIndex
from nodekin.retrievers.composite.link_scores import (
    IN_TITLE,
    UNTITLED,
    link_matrix,
    read_connections,
)
from nodekin.retrievers.similarities.bm25 import Bm25

Find = Callable[[str], list[str]]


def graph_of(
    *texts: str, titles: list[str | None] | None = None, find: Find | None = None
) -> NodeGraph:
    """Return a graph of texts. The ids of the documents are their numbers."""
    graph = NodeGraph(progress=False)
    graph.create_node_group("entity", EntityExtractor(find))
    for at, text in enumerate(texts):
        title = titles[at] if titles else None
        graph.add(Document(text, {} if title is None else {"title": title}, id=str(at)))
    return graph


def synced(graph: NodeGraph) -> LinkIndex:
    index = LinkIndex.open(graph, "entity")
    with graph.reader.reading("ROOT", "entity"):
        index.sync()
    return index


def entities(graph: NodeGraph) -> dict[str, str]:
    """Return the numbers of the passages of each entity that has several passages."""
    index = synced(graph)
    found = sorted(index.entities(graph.reader.ids("ROOT")), key=lambda entity: entity.rank)
    return {entity.name: "".join(entity.passages) for entity in found}


def titles(graph: NodeGraph) -> list[str | None]:
    """Return the keys of the passages' titles."""
    index = synced(graph)
    return [index.title(i) for i in graph.reader.ids("ROOT")]


BRAND = "Brand (play)\nBrand is a play by Henrik Ibsen."
IBSEN = "Henrik Ibsen\nIbsen was born in Skien."


def test_entities_are_names_of_several_passages() -> None:
    graph = graph_of(BRAND, IBSEN)
    assert entities(graph) == {"Henrik Ibsen": "01", "Ibsen": "01"}
    assert titles(graph) == ["brand", "henrik ibsen"]
    graph.add(Document("Skien\nA town. Its theatre is named after Ibsen.", id="2"))
    assert entities(graph) == {"Henrik Ibsen": "01", "Ibsen": "012", "Skien": "12"}
    graph.remove(["1", "2"])
    assert entities(graph) == {}


def test_names_have_several_words() -> None:
    names = entities(
        graph_of(
            "He read at the University of Oslo and at home.",
            "The University of Oslo, in Norway, is old.",
            "She met J. R. Tolkien of Norway in World War 2.",
            "World War 2 was hard for J. R. Tolkien too.",
        )
    )
    expected = {"University of Oslo": "01", "J R Tolkien": "23", "World War 2": "23"}
    assert {name: names[name] for name in expected} == expected
    assert names["Norway"] == "12"
    assert "University of Oslo and" not in names


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (
            [
                "Many people went to Oslo. Oslo is cold, as many towns are.",
                "He saw many ships in Oslo. Many were there.",
                "Many ships.",
            ],
            {"Oslo": "01"},  # the first word of a sentence counts as written elsewhere
        ),
        (
            ["Crime and Punishment\nA novel.", "He had read Crime and Punishment twice."],
            {"Crime": "01", "Crime and Punishment": "01", "Punishment": "01"},
        ),
        (["Ibsen\nA man.", "Life of Ibsen (book)\nIt was read by many."], {"Ibsen": "01"}),
        (["in Oslo and Bergen", "in Oslo and Skien"], {"Oslo": "01"}),
        ([*["in Oslo"] * 100, "in Oslo"], {}),  # a name of many passages
        (["", "\n", "..."], {}),
        (["a text that was wrapped\nin the middle.", "It is a sentence.\nIt is."], {}),
        (
            [
                "曹雪芹\n清代作家，写了《红楼梦》。",
                "红楼梦\n小说，作者是曹雪芹。",
                "大观园是红楼梦里的园子，IBM 没有。",
                "IBM公司。",
            ],
            {"曹雪芹": "01", "红楼梦": "012", "IBM": "23"},
        ),
    ],
)
def test_entities_of_texts(texts: list[str], expected: dict[str, str]) -> None:
    assert entities(graph_of(*texts)) == expected


def hashtags(text: str) -> list[str]:
    return [word for word in text.split() if word.startswith("#")]


def test_find_replaces_rules() -> None:
    texts = ["a #Tea b", "c #tea", "Big Oslo", "Big Oslo"]
    assert entities(graph_of(*texts, find=hashtags)) == {"#Tea": "01"}


def test_common_heading_is_not_a_title() -> None:
    texts = [f"Overview\nThis is an overview of {name}." for name in ("tea", "milk", "bread")]
    assert titles(graph_of(*texts)) == [None, None, None]
    assert titles(graph_of(*texts[:2])) == ["overview", "overview"]  # two passages of one article
    graph = graph_of(*(f"Overview\nOf {name}." for name in ("tea", "milk", "bread")))
    assert titles(graph) == ["overview"] * 3  # no passage has the word in lowercase
    graph.add(Document("It gives an overview, a second overview.", id="lower"))
    assert titles(graph) == [None] * 4
    graph.remove("lower")
    assert titles(graph) == ["overview"] * 3


def test_entity_in_title_connects_more_strongly() -> None:
    texts = ["In Oslo.", "A town.", "A street.", "To Oslo."]
    graph = graph_of(*texts, titles=["", "Oslo", "Oslo Road", ""])
    passages = Bm25().open(graph, "ROOT")
    index = synced(graph)
    with passages.current():
        connections = read_connections(graph, passages, None, index, ["0", "2"])
    matrix = link_matrix(connections)
    rows = [dict(zip(matrix.passages, row, strict=True)) for row in matrix.strengths.tolist()]
    rarity = math.log(5 / 4) / math.log(5)
    strengths = {"1": rarity, "2": IN_TITLE * rarity, "3": UNTITLED * rarity, "0": 0.0}
    assert rows[0] == {i: pytest.approx(strength) for i, strength in strengths.items()}
    strengths = {"0": IN_TITLE * rarity, "1": rarity, "3": IN_TITLE * rarity, "2": 0.0}
    assert rows[1] == {i: pytest.approx(strength) for i, strength in strengths.items()}


NAMES = ["Green Tea", "Green", "Tea", "Ibsen", "Henrik Ibsen", "The Bank of China", "Bank", "US"]
WORDS = ["green", "tea", "of", "in", "bank", "and", "Green", "The", "China", "Tea", "5", "is"]
CHINESE = ["《红楼梦》", "红楼梦很长。", "“曹雪芹写”", "曹雪芹写书，", "红楼", "《红楼》"]
TITLES = [
    *("", "", "Green Tea", "Ibsen (writer)", "红楼梦", "The"),
    *("Tea of the Bank of China", "2018 Green tea", "Henrik Ibsen's Bank", "红楼梦的曹雪芹写"),
]


def document(rng: random.Random, i: str) -> Document:
    """Return sentences in which names stand at the beginning, inside and in longer names."""
    text = " ".join(
        " ".join(rng.choices(NAMES + WORDS, k=rng.randrange(2, 7))) + "." for _ in range(3)
    )
    if rng.random() < 0.2:
        text = "".join(rng.choices(CHINESE, k=3))
    return Document(text, {"title": rng.choice(TITLES)}, id=i)


def letters(text: str) -> list[str]:
    return [word for word in text.split() if word.istitle()]


def shown(graph: NodeGraph) -> list[object]:
    """Return the data of a graph's link index about its passages."""
    index, ids = synced(graph), graph.reader.ids("ROOT")
    order = {i: at for at, i in enumerate(ids)}
    return [
        (
            sorted((*e[:5], (order[e.passages[0]], *e.rank[1:])) for e in index.entities([i])),
            index.title(i),
            [[e[:4] for e in index.named(f"x {name}?")] for name in NAMES],
        )
        for i in ids
    ]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("find", [None, letters])
def test_link_index_after_changes_equals_new_index(
    seed: int, find: Find | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(store: Path | None = None) -> NodeGraph:
        graph = NodeGraph(store=store, progress=False)
        graph.create_node_group("entity", EntityExtractor(find))
        return graph

    monkeypatch.setattr(link_index, "_FEW_NAMES", seed % 2)
    monkeypatch.setattr(link_index, "_MIN_PASSAGES", 1)
    rng = random.Random(seed)
    graph = opened(tmp_path / "graph")
    for _ in range(10):
        existing = [*graph.reader.ids("ROOT")]
        graph.remove(rng.sample(existing, min(len(existing), rng.randrange(3))))
        graph.add([document(rng, i) for i in rng.sample("abcdefghij", rng.randrange(1, 4))])
        new = opened()
        new.add([Document(n.text, n.metadata, id=n.id) for n in graph.nodes("ROOT")])
        assert shown(graph) == shown(new)
        if rng.random() < 0.3:
            with graph.reader.reading("entity"):
                synced(graph).save()
            graph.close()
            graph = opened(tmp_path / "graph")
    graph.close()
