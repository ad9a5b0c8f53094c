"""Parents of chunks, compared with ParentDocumentRetriever and MultiVectorRetriever."""

import pytest
from langchain_classic.retrievers import MultiVectorRetriever
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from support.langchain_peers import DOCUMENTS, QUESTIONS, Pairs, face, ids, splitter

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.retrievers import RecursiveRetriever


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("kinds", [("child", "ROOT"), ("child", "title"), ("title", "ROOT")])
def test_recursive_search_equals_multi_vector_retriever(peer_graph, question, kinds):
    def title(node):
        return [f"All about {node.metadata['topic']}"]

    def parts(document, kind):
        if kind == "child":
            return splitter().split_text(document.page_content)
        return [document.page_content] if kind == "ROOT" else title(document)

    both = MultiVectorRetriever(
        vectorstore=InMemoryVectorStore(Pairs()), docstore=InMemoryStore(),
        id_key="of", search_kwargs={"k": 100},
    )  # fmt: skip
    for kind in kinds:
        for document in DOCUMENTS:
            both.vectorstore.add_documents(
                [Document(part, metadata={"of": document.id}) for part in parts(document, kind)]
            )
    both.docstore.mset([(document.id, document) for document in DOCUMENTS])
    peer_graph.create_node_group("title", title, trans_node=True)
    search = RecursiveRetriever(peer_graph, kinds, "ROOT", "cosine", top_k=4)
    assert face(search).invoke(question) == both.invoke(question)


def test_parent_splitter_searches_sentences_by_default():
    retriever = NodeGraphRetriever.from_documents(
        DOCUMENTS, parent_splitter=splitter(50), evidence=True
    )
    (document,) = retriever.invoke("fermented")
    assert document.page_content == "Green tea is steamed. Black tea is fermented."
    assert document.metadata["evidence"][0]["text"] == "Black tea is fermented."
    parents = {node.parent_id for node in retriever.graph.nodes("parent sentence")}
    assert parents == set(ids(retriever.graph.nodes("parent")))
