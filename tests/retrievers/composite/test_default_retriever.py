"""A graph searched without choosing anything."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from nodekin.nodegraph import (
    Document,
    Embedder,
    EmbeddingError,
    Node,
    NodeGraph,
    split_sentences,
)
from nodekin.nodegraph.errors import VectorLengthError
from nodekin.retrievers import DefaultRetriever, ScoredNode, as_retriever, restrict
from nodekin.retrievers.base_retriever import BaseRetriever
from nodekin.retrievers.composite.default_retriever import MISSING
from nodekin.retrievers.composite.default_settings import MeasuredSettings, read_settings
from nodekin.retrievers.tracing import observe

TOPICS = ["tea", "rivers", "music", "chess", "bread", "stars", "horses", "glass"]


def documents(titled: bool = False, name: str = "{}") -> list[Document]:
    """Return documents that name the next topic's title, if they have titles."""
    return [
        Document(
            f"All about {topic} number {n}. It is {topic} of kind {n}. Many like {topic} {n}."
            + (f" It is not {name.format(following).title()} {n}." if titled else ""),
            {"title": f"The {topic} {n}", "of": topic} if titled else {"of": topic},
            id=f"{topic}{n}",
        )
        for topic, following in zip(TOPICS, [*TOPICS[1:], TOPICS[0]], strict=True)
        for n in range(4)
    ]


def by_topic(texts: list[str]) -> np.ndarray:
    """Embed by topic and number: sentences of one passage are alike."""
    rows = np.full((len(texts), len(TOPICS) + 4), 1e-3)
    for row, text in zip(rows, texts, strict=True):
        for place, word in enumerate([*TOPICS, *"0123"]):
            row[place] += word in text
    return rows


def by_chance(texts: list[str]) -> np.ndarray:
    """Embed by nothing that the texts mean."""
    return np.array([np.random.default_rng(sum(map(ord, t))).normal(size=64) for t in texts])


def by_letters(texts: list[str]) -> np.ndarray:
    """Embed by letters and digits."""
    return np.array([[text.count(chr(code)) for code in range(48, 123)] for text in texts], float)


def ids(results: list[ScoredNode]) -> list[str]:
    """Return the ids of the documents."""
    return [result.node.document_id for result in results]


def measured(graph: NodeGraph, *keys: str) -> MeasuredSettings:
    as_retriever(graph).retrieve("tea")
    settings = read_settings(graph, "passage", keys)
    assert settings is not None
    return settings


def test_default_retriever_finds_best_document_in_all_calls() -> None:
    graph = NodeGraph(progress=False)
    graph.add(documents())
    retriever = as_retriever(graph)
    assert ids(retriever.retrieve("tea of kind 2", top_k=1)) == ["tea2"]
    assert len(retriever.retrieve("about")) == 6
    assert ids(retriever.retrieve("kind 2", top_k=20, filters={"of": "bread"}))[0] == "bread2"
    assert {e.group for r in retriever.retrieve("tea 2") for e in r.evidence} == {
        "passage",
        "passage sentence",
    }
    assert ids(asyncio.run(retriever.aretrieve("tea of kind 2", top_k=1))) == ["tea2"]
    assert [ids(each) for each in retriever.batch(["bread 1", "chess 3"], top_k=1)] == [
        ["bread1"],
        ["chess3"],
    ]


HANDBOOK = (
    "茶室手册说明各家茶室怎样购买、保存和供应茶叶。每位新来的员工都要阅读。茶叶放在柜台后面。" * 5
)


@pytest.mark.parametrize(
    ("question", "short", "long"),
    [
        (
            "谁付运费",
            "租客每月付房租。",
            f"{HANDBOOK}同一个茶箱一周内被记下三次，就退回茶园，运费由茶园承担。",
        ),
        (
            "Who pays the freight?",
            "Pay the insurance.",
            f"{'The room opens at nine, and each guest gets a cup. ' * 20}The garden pays the "
            "freight of chests that are sent back.",
        ),
    ],
)
def test_better_sentence_in_long_passage_is_before_word_in_short_passage(
    question: str, short: str, long: str
) -> None:
    graph = NodeGraph(progress=False)
    others = [
        "Die Gebühr beträgt 22 Euro pro Nacht.",
        "def knots(n): return n * 1.852",
        "茶叶新鲜。",
    ]
    graph.add([short, long, *others])
    first, *_ = graph.search(question, top_k=2)
    assert first.node.document_id == graph.nodes("ROOT")[1].id
    assert [result.score for result in graph.search(question, top_k=1)] == [first.score]


def test_vector_weight_depends_on_measured_quality() -> None:
    for embed, used in ((by_topic, True), (by_chance, False)):
        graph = NodeGraph(embed=embed, progress=False)
        graph.add(documents())
        (weight,) = measured(graph, "default").weights
        assert (weight > 1) == used, embed
        assert weight == 0 or used, embed


def test_vectors_find_passages_outside_measured_sample() -> None:
    graph = NodeGraph(embed=by_topic, progress=False)
    graph.add([Document(f"{d.text} {n}", id=f"{d.id} {n}") for d in documents() for n in "abc"])
    results = as_retriever(graph).retrieve("tea of kind 2", top_k=3)
    assert sorted(ids(results)) == ["tea2 a", "tea2 b", "tea2 c"]


def test_links_are_followed_if_texts_mention_titles() -> None:
    small = [  # headings of documentation occur as ordinary words
        Document(text.text.replace("It is not", "it is not").lower(), text.metadata)
        for text in documents(titled=True)
    ]
    overview = [Document(text.text, {"title": "Overview"}) for text in documents()]
    for texts, follows in (
        (documents(titled=True), True),
        (documents(titled=False), False),
        (documents(titled=True, name="other"), False),
        (small, False),
        (overview, False),
    ):
        graph = NodeGraph(progress=False)
        graph.add(texts)
        assert measured(graph).links == follows
        assert ("passage entity" in graph.groups) == follows
    graph = NodeGraph(progress=False)
    graph.add(documents(titled=True))
    plain = DefaultRetriever(graph, follow_links=False)
    assert ids(plain.retrieve("tea of kind 2", top_k=1)) == ["tea2"]
    assert "passage entity" not in graph.groups


def test_settings_are_measured_again_after_growth() -> None:
    graph = NodeGraph(progress=False)
    graph.add(documents()[:3])
    assert not measured(graph).links
    graph.add(documents(titled=True))
    assert measured(graph).links
    graph.remove([i for i in graph.reader.document_ids() if i[-1] != "0"])
    assert measured(graph).documents == len(TOPICS)


def test_measured_settings_are_stored_with_graph(tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    with NodeGraph(store=path, embed=Embedder(by_topic, "topic"), progress=False) as graph:
        graph.add(documents(titled=True))
        first = measured(graph, "default")
        results = as_retriever(graph).retrieve("tea of kind 2")
    with NodeGraph(store=path, embed=Embedder(by_topic, "topic"), progress=False) as graph:
        assert read_settings(graph, "passage", ["default"]) == first
        graph.add([Document(f"Water is wet, and so is {n}.") for n in range(20)])
        assert measured(graph, "default") == first
        other = NodeGraph(store=path, embed=Embedder(by_topic, "topic"), progress=False)
        assert read_settings(other, "passage", ["default"]) == first
        other.close()
        graph.remove(
            [i for i in graph.reader.document_ids() if i not in {d.id for d in documents()}]
        )
        again = as_retriever(graph).retrieve("tea of kind 2")
        assert [(r.node.id, r.score) for r in again] == [(r.node.id, r.score) for r in results]
    with NodeGraph(store=path, embed=Embedder(by_chance, "chance"), progress=False) as graph:
        assert read_settings(graph, "passage", ["default"]) is None  # another model


def test_restricted_default_retriever_returns_one_tenant() -> None:
    graph = NodeGraph(progress=False)
    graph.add(documents(titled=True))
    restricted = restrict(as_retriever(graph), {"of": "tea"})
    results = restricted.retrieve("The rivers 2, the chess 1 and tea", top_k=30)
    assert {result.node.metadata["of"] for result in results} == {"tea"}
    assert {e.node.metadata.get("of") for r in results for e in r.evidence} == {"tea"}


def test_default_retriever_with_filters_and_without_documents() -> None:
    graph = NodeGraph(progress=False)
    assert as_retriever(graph).retrieve("tea") == []
    graph.create_node_group("line", str.splitlines)
    graph.add(Document("green tea\nblack tea", id="a"))
    lines = DefaultRetriever(graph, "line", filters={"of": "x"})
    assert lines.retrieve("tea") == []
    assert {r.node.group for r in DefaultRetriever(graph, "line").retrieve("tea")} == {"line"}
    with pytest.raises(LookupError, match="unknown group 'lines'"):
        DefaultRetriever(graph, "lines")
    with pytest.raises(TypeError, match="graph must be a NodeGraph"):
        DefaultRetriever("docs")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="words must be 'bm25' or a Bm25, got 'cosine'"):
        DefaultRetriever(graph, words="cosine")


def test_existing_sentence_group_is_reused() -> None:
    graph = NodeGraph(progress=False)
    graph.add(documents(titled=False))
    graph.create_node_group("line", split_sentences, parent="ROOT")
    assert DefaultRetriever(graph, "ROOT").sentences == "line"
    assert DefaultRetriever(graph).sentences == "passage sentence"
    DefaultRetriever(graph, "ROOT").retrieve("tea")
    assert "ROOT sentence" not in graph.groups


@pytest.mark.parametrize("fails_at", ["query", "passages"])
async def test_failed_model_falls_back_to_words(
    fails_at: str, caplog: pytest.LogCaptureFixture
) -> None:
    def embed(texts: list[str]) -> np.ndarray:
        if fails_at == "passages" or any("?" in text for text in texts):
            raise ConnectionError("no server")
        return by_topic(texts)

    graph = NodeGraph(embed=embed, progress=False)
    graph.add(documents())
    words = DefaultRetriever(graph, embed_keys=[])
    retriever = as_retriever(graph)
    query = "tea of kind 2?"
    for results in (retriever.retrieve(query), await retriever.aretrieve(query)):
        assert [(r.node, r.score) for r in results] == [
            (r.node, r.score) for r in words.retrieve(query)
        ]
        (variant,) = results[0].evidence[0].variants
        assert (variant.query, variant.strategy) == (query, "default")
        assert "words alone" in str(variant.note)
        assert "no server" in str(variant.note)
    assert "words only" in caplog.text
    with pytest.raises(EmbeddingError, match="no server"):
        DefaultRetriever(graph, embed_keys=["default"]).retrieve(query)


async def test_changed_model_with_same_name_raises(tmp_path: Path) -> None:
    def opened(length: int) -> NodeGraph:
        embed = Embedder(lambda texts: [[1.0] * length for _ in texts], "letters")
        return NodeGraph(store=tmp_path / "graph", embed=embed, progress=False)

    with opened(3) as graph:
        graph.add(["Green tea is steamed.", "Rivers run to the sea."])
        assert len(as_retriever(graph)("tea")) == 2
    with opened(4) as graph:
        for _ in range(2):
            with pytest.raises(VectorLengthError, match=r"vectors of 4 numbers, but .* have 3"):
                as_retriever(graph)("Which tea?")
            with pytest.raises(VectorLengthError, match=r"vectors of 4 numbers, but .* have 3"):
                await as_retriever(graph).aretrieve("Which tea?")


def found_by(retriever: DefaultRetriever, query: str) -> set[str | None]:
    """Return the embeddings that found results; None for words."""
    results = retriever(query)
    return {match.embed_key for result in results for match in result.evidence}


@pytest.mark.parametrize("builds_elsewhere", [False, True])
def test_vectors_are_compared_as_soon_as_they_are_complete(
    builds_elsewhere: bool, tmp_path: Path
) -> None:
    def opened() -> NodeGraph:
        model = Embedder(by_letters, "letters")
        return NodeGraph(store=tmp_path / "graph", embed=model, progress=False)

    def numbered(word: str, count: int) -> list[Document]:
        return [Document(f"{word} number {n}.", id=f"{word}{n}") for n in range(count)]

    graph, elsewhere = opened(), opened()
    retriever, _ = DefaultRetriever(graph), DefaultRetriever(elsewhere)
    graph.add(numbered("Tea", MISSING + 2))
    assert found_by(retriever, "tea number 7") == {None}
    graph.add(numbered("Milk", 5))
    graph.remove("Tea0")
    assert found_by(retriever, "milk number 2") == {None}
    (elsewhere if builds_elsewhere else graph).build("passage sentence", embed=True)
    assert found_by(retriever, "tea number 7") == {None, "default"}
    graph.add(numbered("Coffee", MISSING + 1))
    assert found_by(retriever, "coffee number 7") == {None}
    graph.remove("Coffee7")
    assert found_by(retriever, "coffee number 8") == {None, "default"}


def test_missing_vectors_without_weight_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    graph = NodeGraph(embed=by_chance, progress=False)
    graph.add([Document(f"{d.text} {n}", id=f"{d.id} {n}") for d in documents() for n in range(9)])
    retriever = DefaultRetriever(graph)
    retriever.build()
    assert found_by(retriever, "tea number 7") == {None}
    graph.add([Document(f"Coffee number {n}.", id=f"c{n}") for n in range(MISSING + 1)])
    assert found_by(retriever, "coffee number 7") == {None}
    assert not caplog.messages


read: list[str] = []  # global, since a closure is a part of the version of a search text


def searched(node: Node) -> str:
    read.append(node.text)
    return node.text


def test_searches_by_words_do_not_read_unchanged_nodes() -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0]] * len(texts)

    graph = NodeGraph(embed=embed, search_text=searched, progress=False)
    graph.add([Document(f"Tea number {n}.", id=str(n)) for n in range(MISSING + 50)])
    retriever = DefaultRetriever(graph)
    retriever("tea")
    for number in range(3):
        read.clear()
        graph.add(Document(f"Coffee number {number}.", id="new"))
        assert [result.text for result in retriever("coffee")] == [f"Coffee number {number}."]
        assert not [text for text in read if "Tea" in text]


def test_many_missing_vectors_fall_back_to_words(caplog: pytest.LogCaptureFixture) -> None:
    embedded: list[str] = []

    def model(texts: list[str]) -> np.ndarray:
        embedded.extend(texts)
        return by_letters(texts)

    graph = NodeGraph(embed=model, progress=False)
    graph.add([Document(f"Tea number {n}.", id=str(n)) for n in range(MISSING)])
    retriever = DefaultRetriever(graph)
    assert retriever.retrieve("tea number 7")[0].node.document_id == "7"
    assert len(embedded) >= MISSING
    embedded.clear()
    graph.add([Document(f"Coffee number {n}.", id=f"c{n}") for n in range(MISSING + 1)])
    results = retriever.retrieve("coffee number 7")
    assert results[0].node.document_id == "c7"
    assert {match.embed_key for result in results for match in result.evidence} == {None}
    assert not embedded
    retriever.retrieve("coffee number 8")
    assert caplog.text.count("201 vectors of 'passage sentence' are missing") == 1
    explicit = DefaultRetriever(graph, embed_keys=["default"])
    assert explicit.retrieve("coffee number 7")
    assert len(embedded) == MISSING + 2  # including the question
    found = retriever.retrieve("coffee number 7")
    assert {match.embed_key for result in found for match in result.evidence} >= {"default"}
    graph.add([Document(f"Milk number {n}.", id=f"m{n}") for n in range(MISSING + 1)])
    embedded.clear()
    assert graph.build(embed=True) == []
    assert len(embedded) == MISSING + 1
    found = graph.search("milk number 7")
    assert {match.embed_key for result in found for match in result.evidence} >= {"default"}


def linked_graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add(documents(titled=True))
    return graph


def test_linked_search_declares_and_creates_nothing_again(monkeypatch) -> None:
    graph = linked_graph()
    created: list[str] = []
    original = BaseRetriever.__init__

    def counted(self, **settings) -> None:
        created.append(type(self).__name__)
        original(self, **settings)

    monkeypatch.setattr(BaseRetriever, "__init__", counted)
    retriever = DefaultRetriever(graph, follow_links=True)
    first = retriever.retrieve("tea number 1")
    created.clear()
    state = graph.reader.held_state()
    for question in ("tea number 1", "rivers of kind 2", "chess"):
        retriever.retrieve(question)
    assert created == []
    assert graph.reader.held_state() is state  # a declared group changes the state
    copy = retriever.with_fetch_k(1)
    assert [result.node.id for result in copy.retrieve("tea number 1")]
    assert created == []
    assert retriever.retrieve("tea number 1") == first
    assert graph.reader.held_state() is state


@pytest.mark.parametrize("removed", [0, 1, 2])
def test_linked_search_omits_passages_removed_meanwhile(removed: int) -> None:
    graph = linked_graph()
    retriever = DefaultRetriever(graph, follow_links=True)
    before = ids(retriever.retrieve("tea number 1"))
    pending = [before[removed]]

    class Removes:
        def begin(self, span, parent) -> None:
            pass

        def end(self, span) -> None:
            if span.name == "follow links" and pending:
                graph.remove(pending.pop())

    with observe(Removes()):
        results = retriever.retrieve("tea number 1")
    assert results
    assert before[removed] not in ids(results)
    passages = {match.node.document_id for result in results for match in result.evidence}
    assert before[removed] not in passages
