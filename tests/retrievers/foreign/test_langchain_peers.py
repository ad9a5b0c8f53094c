"""Comparison of fusions with LangChain's EnsembleRetriever."""

import uuid

import pytest
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from support import langchain_peers
from support.langchain_peers import (
    QUESTIONS,
    Listed,
    ids,
    plain_retriever,
    texts,
    theirs,
)

from nodekin.retrievers import FusionRetriever, Retriever


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.9, 0.1], [1, 0]])
def test_fusion_weights_and_rank_constant_match_ensemble(question, weights):
    peer_graph = langchain_peers.peer_graph()
    mine = theirs().as_retriever(search_kwargs={"k": 3})
    words = plain_retriever(Retriever(peer_graph, "ROOT", "bm25", top_k=3))
    for constant in (1, 60):
        expected = EnsembleRetriever(retrievers=[mine, words], weights=weights, c=constant)
        fusion = FusionRetriever([mine, words], weights=weights, rank_constant=constant)
        found = expected.invoke(question)
        if 0 in weights:  # skipped by our fusion, ranked last by the ensemble
            found = mine.invoke(question)
        assert plain_retriever(fusion).invoke(question) == found


def test_merge_by_metadata_key_matches_ensemble():
    def page(text, url):
        return Document(text, metadata={"url": url})

    old = [page("Tea (2019)", "/tea"), page("Milk", "/milk"), page("Water", "/water")]
    new = [page("Coffee", "/coffee"), page("Tea (2024)", "/tea"), page("Milk!", "/milk")]
    parts = [Listed(documents=old), Listed(documents=new)]
    expected = EnsembleRetriever(retrievers=parts, weights=[0.7, 0.3], id_key="url").invoke("?")
    fusion = FusionRetriever(parts, weights=[0.7, 0.3], merge_by="url")
    assert plain_retriever(fusion).invoke("?") == expected
    assert texts(expected) == ["Tea (2019)", "Milk", "Water", "Coffee"]


MADE = [str(uuid.UUID(int=n)) for n in (1, 2)]  # random ids, as stores create them


@pytest.mark.parametrize(
    ("names", "merged"),
    [
        (["a.md", "b.md"], ["a.md", "b.md"]),
        (["a.md", "b.md", None], ["a.md", "b.md"]),
        (["a.md", None, "b.md"], ["a.md", "b.md"]),
        ([None, "a.md", MADE[0], "b.md", "a.md"], [None, "b.md"]),
        (MADE, MADE[:1]),
    ],
)
def test_fusion_merges_equal_texts_unless_ids_are_given(names, merged):
    """An ensemble merges documents by text alone."""
    documents = [Document("Tea.", id=name) for name in names]
    parts = [Listed(documents=[document]) for document in documents]
    weights = [1 / len(parts)] * len(parts)
    assert len(EnsembleRetriever(retrievers=parts, weights=weights).invoke("?")) == 1
    assert {*ids(plain_retriever(FusionRetriever(parts)).invoke("?"))} == {*merged}
    by_id = plain_retriever(FusionRetriever(parts, merge_by="document.id"))
    assert {*ids(by_id.invoke("?"))} == {*names}
