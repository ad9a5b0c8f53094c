"""Persistence: saved folders, pickled objects, and documents in a saved state."""

import pickle
from tempfile import TemporaryDirectory

import pytest
from langchain_community.vectorstores import FAISS
from langchain_core.embeddings import Embeddings
from langchain_core.load import dumps
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from support.langchain_programs import DOCUMENTS, QUESTIONS, RETRIEVERS, THEIRS, check
from support.letters import Letters

from nodekin.adapters.langchain import NodeGraphVectorStore

ours = pytest.mark.parametrize("ours", RETRIEVERS.values(), ids=RETRIEVERS)


class UnitLetters(Embeddings):
    """Vectors of unit length, which FAISS orders by distance as by cosine."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        vector = Letters().vector(text)
        length = sum(number * number for number in vector) ** 0.5
        return [number / length for number in vector]


def saved_folder(cls, config):
    with TemporaryDirectory() as folder:
        cls.from_documents(DOCUMENTS, UnitLetters()).save_local(folder, "tea")
        store = cls.load_local(folder, UnitLetters(), "tea", allow_dangerous_deserialization=True)
        found = [store.similarity_search(question, k=3) for question in QUESTIONS]
        store.add_texts(["Tea is a drink."], [{"n": 9}], ids=["new"])
        store.delete(["d0"])
        found += [store.as_retriever().invoke(question, config) for question in QUESTIONS]
        if isinstance(store, NodeGraphVectorStore):
            store.graph.close()
        return found


def pickled_retriever(make, config):
    retriever = pickle.loads(pickle.dumps(make()))
    return [retriever.invoke(question, config) for question in QUESTIONS]


def saved_state(make, config):
    serializer = JsonPlusSerializer()
    documents = make().invoke(QUESTIONS[0], config)
    assert serializer.loads_typed(serializer.dumps_typed(documents)) == documents
    return dumps(documents)


def test_saved_folder_equals_that_of_faiss():
    check(saved_folder, FAISS, NodeGraphVectorStore)


@ours
@pytest.mark.parametrize("program", [pickled_retriever, saved_state])
def test_saved_objects_equal_those_of_langchain(program, ours):
    check(program, THEIRS, ours)
