"""Retrievers that are searched together find what they find one by one."""

import asyncio
import random
from typing import Any

import numpy as np
import pytest

from nodekin.nodegraph import Document, NodeGraph, split_sentences
from nodekin.retrievers import FusionRetriever, Retriever, RetrieverSettings, ScoredNode, restrict
from nodekin.retrievers.base_retriever import child_k_override
from nodekin.retrievers.composite.joint_search import can_join
from nodekin.retrievers.tracing import trace
from nodekin.retrievers.validation import with_settings

WORDS = "tea river music chess bread star horse glass stone bird lamp salt".split()


def letters(texts: list[str]) -> np.ndarray:
    return np.array([[1 + text.count(letter) for letter in "abeiorst"] for text in texts])


@pytest.fixture(scope="module")
def graph() -> NodeGraph:
    rnd = random.Random(7)
    graph = NodeGraph(embed={"one": letters, "two": lambda t: letters(t)[:, ::-1]}, progress=False)
    graph.add(
        [
            Document(
                " ".join(
                    " ".join(rnd.choices(WORDS, k=rnd.randint(2, 9))).capitalize() + "."
                    for _ in range(rnd.randint(1, 9))
                ),
                {"of": rnd.choice(["a", "b"])},
                id=str(number),
            )
            for number in range(150)
        ]
    )
    graph.create_node_group("sentence", split_sentences)
    return graph


def shown(results: list[ScoredNode]) -> list[Any]:
    return [
        (result.node.id, result.score, result.node.graph is not None, result.explain())
        for result in results
    ]


def branches(graph: NodeGraph, **options: Any) -> dict[str, Retriever]:
    vectors = with_settings(Retriever, {"embed_keys": ["one"], **options})
    options = with_settings(Retriever, options)
    return {
        "whole": Retriever(graph, "ROOT", "bm25", top_k=20, **options),
        "sentences": Retriever(graph, "sentence", "bm25", target="ROOT", top_k=20, **options),
        "vectors": Retriever(graph, "sentence", "cosine", target="ROOT", top_k=12, **vectors),
    }


@pytest.mark.parametrize("mode", ["rrf", "relative", "distribution", "concat"])
@pytest.mark.parametrize(
    "options",
    [{}, {"filters": {"of": "a"}}, {"similarity_cut_off": 0.9}, {"child_k": 7}],
    ids=str,
)
def test_the_same_as_one_by_one(graph: NodeGraph, mode: Any, options: dict[str, Any]) -> None:
    of_all = branches(graph, **options)
    for names in (["whole", "sentences"], ["sentences", "whole"], list(of_all), ["whole"] * 2):
        fusion = FusionRetriever([of_all[name] for name in names], mode, [1, 3, 2][: len(names)])
        for top_k in (None, 1, 40):
            queries = ["tea by the river", "salt", "chess horse", "nothing of it"]
            with trace() as traced:
                one_by_one = [fusion.retrieve(query, top_k=top_k) for query in queries]
            assert len(traced.children[0].children) == len(names)
            for found in (
                [fusion.retrieve(query, top_k=top_k) for query in queries],
                fusion.batch(queries, top_k=top_k),
                asyncio.run(fusion.abatch(queries, top_k=top_k)),
            ):
                assert list(map(shown, found)) == list(map(shown, one_by_one))


def test_conditions_of_a_call_and_a_restriction(graph: NodeGraph) -> None:
    fusion = FusionRetriever([*branches(graph).values()], "relative")
    for call in (
        lambda: fusion.retrieve("tea", filters={"of": "b"}),
        lambda: restrict(fusion, {"of": "b"}).retrieve("tea"),
    ):
        with trace():
            one_by_one = call()
        assert shown(call()) == shown(one_by_one)
        assert {result.node.metadata["of"] for result in call()} == {"b"}
    with child_k_override(3):
        found = fusion.retrieve("tea")
        with trace():
            assert shown(found) == shown(fusion.retrieve("tea"))
    assert fusion.retrieve(" ", filters={"of": "b"}, top_k=3)


def test_what_changed_is_found(graph: NodeGraph) -> None:
    fusion = FusionRetriever([*branches(graph).values()], "relative")
    assert "new" not in {result.node.id for result in fusion.retrieve("zebra")}
    graph.add(Document("A zebra drinks tea.", id="new"))
    assert fusion.retrieve("zebra")[0].node.document_id == "new"
    graph.remove("new")
    assert "new" not in {result.node.document_id for result in fusion.retrieve("zebra")}


def test_what_can_be_joined(graph: NodeGraph) -> None:
    of_all = branches(graph)
    other = NodeGraph(progress=False)
    assert can_join([*of_all.values()])
    assert not can_join([of_all["whole"], Retriever(other, "ROOT")])
    assert not can_join([of_all["whole"], Retriever(graph, "sentence", "bm25")])
    assert not can_join([of_all["whole"], Retriever(graph, "ROOT", "auto")])
    assert not can_join(
        [
            of_all["whole"],
            Retriever(
                graph, "sentence", "bm25", target="ROOT", settings=RetrieverSettings(lift="sum")
            ),
        ]
    )
    assert not can_join([of_all["whole"], Retriever(graph, "ROOT", "cosine")])
    assert not can_join([of_all["whole"], FusionRetriever([*of_all.values()])])
