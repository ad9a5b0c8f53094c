"""Lists of documents fused in a chain, beside LangChain's own ways."""

import asyncio
import json
import pickle

import pytest
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumps
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel

from nodekin.adapters.langchain import decompose_query, fuse_documents

A, B, C = (Document(f"{name} is a letter.", metadata={"name": name}) for name in "ABC")


class Fixed(BaseRetriever):
    documents: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.documents


def test_the_lists_of_a_mapped_retriever_are_one_list_without_duplicates():
    """As in LangChain's RAG-Fusion recipe, which keys on the JSON of whole documents."""

    def reciprocal_rank_fusion(results, k=61):
        fused = {}
        for documents in results:
            for rank, document in enumerate(documents):
                key = dumps(document)
                fused[key] = fused.get(key, 0) + 1 / (rank + k)
        ordered = sorted(fused.items(), key=lambda item: -item[1])
        return [Document(**json.loads(key)["kwargs"]) for key, _ in ordered]

    lists = {"a?": [A, B], "b?": [B, C, A]}
    retriever = RunnableLambda(lists.__getitem__)
    model = FakeListChatModel(responses=["a?\nb?"])
    searches = decompose_query(model) | retriever.map()
    expected = (searches | reciprocal_rank_fusion).invoke("a or b?")
    assert (searches | fuse_documents()).invoke("a or b?") == expected == [B, A, C]


def test_branches_fuse_as_in_langchains_ensemble():
    retrievers = [Fixed(documents=[A, B, C]), Fixed(documents=[C, B])]
    weights = [0.7, 0.3]
    theirs = EnsembleRetriever(retrievers=retrievers, weights=weights).invoke("?")
    branches = RunnableParallel(one=retrievers[0], other=retrievers[1])
    ours = (branches | fuse_documents(weights=weights)).invoke("?")
    assert ours == theirs
    assert asyncio.run((branches | fuse_documents(weights=weights)).ainvoke("?")) == theirs


def test_documents_come_back_as_they_were_and_are_not_changed():
    document = Document("a", id="1", metadata={"relevance_score": 0.4})
    (fused,) = fuse_documents().invoke([[document], [document]])
    assert fused == document
    assert fused is not document
    (detailed,) = fuse_documents(details=True).invoke([[document], [document]])
    assert detailed.metadata["score"] == pytest.approx(2 / 61)


def test_documents_are_merged_by_a_field_on_request():
    old, new = (
        Document("A", metadata={"key": 1}, id="1"),
        Document("A!", metadata={"key": 1}, id="2"),
    )
    assert fuse_documents(merge_by="key").invoke([[old], [new]]) == [old]
    assert len(fuse_documents().invoke([[old], [new]])) == 2


def test_nothing_is_nothing():
    assert fuse_documents().invoke([]) == []
    assert fuse_documents().invoke([[], []]) == []


def test_a_step_is_configuration():
    step = fuse_documents(mode="concat", k=2, weights=[1, 2])
    assert pickle.loads(pickle.dumps(step)) == step
    assert step.is_lc_serializable()


@pytest.mark.parametrize(
    ("step", "lists", "error", "message"),
    [
        (fuse_documents(), [A, B], TypeError, "lists of documents"),
        (fuse_documents(), "tea", TypeError, "lists of documents"),
        (fuse_documents(), [["tea"]], TypeError, "no document"),
        (fuse_documents(weights=[1.0]), [[A], [B]], ValueError, "1 weights .* for 2 lists"),
    ],
)
def test_what_can_not_be_fused_is_refused(step, lists, error, message):
    with pytest.raises(error, match=message):
        step.invoke(lists)
