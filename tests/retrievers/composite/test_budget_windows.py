"""Windows of whole sentences: results of the default search with a token budget."""

from itertools import pairwise

import pytest

from nodekin.nodegraph import Document, NodeGraph, count_tokens, split_sentences
from nodekin.retrievers import DefaultRetriever, as_retriever, restrict

FILLER = "The harbour was busy in those years, and ships came from far away. "

HISTORY = (
    "# The town\n\n"
    + FILLER * 12
    + "\n\n# The bridge\n\n"
    + FILLER * 5
    + "The stone bridge was built by Anna Lind in 1741. It cost nine hundred silver coins. "
    + FILLER * 5
    + "\n\n# The mill\n\n"
    + FILLER * 12
)

CHINESE = (
    "本镇历史悠久，港口十分繁忙，各地的船只常常来到这里。" * 12
    + "石桥由林安娜于一七四一年建成。造桥花了九百枚银币。"
    + "本镇历史悠久，港口十分繁忙，各地的船只常常来到这里。" * 12
)


def graph_of(*documents, **options) -> NodeGraph:
    graph = NodeGraph(progress=False, **options)
    graph.add(list(documents))
    return graph


def texts(results) -> list[str]:
    return [item.node.text for item in results]


@pytest.fixture(scope="module")
def graph() -> NodeGraph:
    return graph_of(
        Document(HISTORY, {"tenant": "a"}, id="history"), Document(CHINESE, id="chinese")
    )


@pytest.mark.parametrize(
    ("question", "answer", "document"),
    [
        ("Who built the stone bridge?", "Anna Lind in 1741. It cost nine", "history"),
        ("石桥是谁建成的？", "林安娜于一七四一年建成。造桥", "chinese"),
    ],
)
def test_window_contains_whole_sentences_of_document(graph, question, answer, document) -> None:
    found = as_retriever(graph).retrieve(question, max_tokens=60)
    assert sum(count_tokens(item.node.text) for item in found) == found.tokens <= 60
    node = found[0].node
    assert answer in node.text
    assert (node.document_id, node.root.id) == (document, document)
    assert graph.node(document).text[node.start : node.end] == node.text
    sentences = {sentence.text: sentence for sentence in graph.nodes("passage sentence")}
    assert set(split_sentences(node.text)) <= set(sentences)
    assert node.parent.group == "passage"
    assert node.text in node.parent.text


def test_window_keeps_introductions_before_introduced_text() -> None:
    text = (
        "# Tea\n\n"
        + FILLER * 3
        + "\n\n## Brewing sencha\n\nThe water is boiled and left to cool down.\n\n"
        + FILLER * 8
        + "\n\nThe leaves are kept:\n\n- in tin boxes, away from all light. Never in glass.\n"
        + "- without salt, sugar\n\n"
        + FILLER * 8
    )
    default = as_retriever(graph_of(text))
    (found,) = default.retrieve("Is water boiled?", max_tokens=25, top_k=1)
    assert found.node.text.startswith("## Brewing sencha\n\nThe water is boiled")
    for item in ("tin boxes away from light", "never in glass", "without salt and sugar"):
        (found,) = default.retrieve(item, max_tokens=35, top_k=1)
        assert found.node.text.startswith("The leaves are kept:\n\n- in tin boxes")
    (found,) = default.retrieve(
        "without salt and sugar", max_tokens=6
    )  # no room for the introduction
    assert found.node.text == "- without salt, sugar"
    for question in ("How is sencha brewed?", "How are leaves kept?"):
        for max_tokens in range(12, 120, 9):
            found = default.retrieve(question, max_tokens=max_tokens)
            assert not any(text.endswith((":", "Brewing sencha")) for text in texts(found))


def test_document_of_one_heading_is_found() -> None:
    graph = graph_of("# Sencha", "Gyokuro:", "Rivers run to the sea.")
    found = as_retriever(graph).retrieve("sencha gyokuro", max_tokens=20)
    assert sorted(texts(found)) == ["# Sencha", "Gyokuro:"]


def test_window_extends_into_next_found_passage() -> None:
    text = "\n\n".join(
        f"Ibsen wrote play number {number} in Rome. In {number} {FILLER}" for number in range(40)
    )
    graph = graph_of(text)
    found = as_retriever(graph).retrieve("Which plays did Ibsen write in Rome?", max_tokens=700)
    assert len(graph.nodes("passage")) > 2
    starts = [passage.start for passage in graph.nodes("passage")[1:]]
    spans = [(item.node.start, item.node.end) for item in found]
    assert any(first < at < last for first, last in spans for at in starts)
    assert all(
        text[first:last] == item.node.text for (first, last), item in zip(spans, found, strict=True)
    )
    assert all(end <= start for (_, end), (start, _) in pairwise(sorted(spans)))


def test_windows_meet_filters_and_restrictions(graph) -> None:
    default = as_retriever(graph)
    question = "stone bridge 石桥"
    assert {r.node.document_id for r in default.retrieve(question, max_tokens=200)} == {
        "history",
        "chinese",
    }
    found = default.retrieve(question, max_tokens=200, filters={"tenant": "a"})
    assert {item.node.document_id for item in found} == {"history"}
    restricted = restrict(default, {"tenant": "a"}).retrieve(question, max_tokens=200)
    assert texts(restricted) == texts(found)
    assert restricted[0].node.id == found[0].node.id


async def test_windows_are_equal_for_async_batch_and_file(graph, tmp_path) -> None:
    questions = ["Who built the stone bridge?", "石桥是谁建成的？", " ", "xyzzy"]
    found = as_retriever(graph).batch(questions, max_tokens=80)
    assert await as_retriever(graph).abatch(questions, max_tokens=80) == found
    documents = [graph.node(i).text for i in ("history", "chinese")]
    stored = graph_of(store=tmp_path / "graph.db")
    stored.add(
        [Document(text, id=i) for i, text in zip(("history", "chinese"), documents, strict=True)]
    )
    of_file = as_retriever(stored)
    for question, expected in zip(questions, found, strict=True):
        results = await of_file.aretrieve(question, max_tokens=80)
        assert [(r.node.id, r.node.text) for r in results] == [
            (r.node.id, r.node.text) for r in expected
        ]
    stored.close()


def test_linked_passage_is_returned_as_window() -> None:
    graph = graph_of(
        Document("Brand is a play by Henrik Ibsen. " + FILLER, {"title": "Brand"}),
        Document("Henrik Ibsen was born in Skien. He went to Rome.", {"title": "Henrik Ibsen"}),
    )
    found = DefaultRetriever(graph, follow_links=True).retrieve("Brand", max_tokens=200)
    assert set(texts(found)) == {node.text for node in graph.nodes("passage")}


def test_sentence_found_by_vectors_only_becomes_window() -> None:
    def about_cats(texts):
        return [[1.0, 0.0] if "feline" in text or "cat" in text else [0.0, 1.0] for text in texts]

    text = FILLER * 5 + "A feline slept on the quay. " + FILLER * 5
    graph = graph_of(text, embed=about_cats)
    found = DefaultRetriever(graph).retrieve("a cat", max_tokens=30)
    assert "A feline slept on the quay." in found[0].node.text
