"""A strict LangChain vector store, and a graph whose vectors are stored in it."""

import itertools

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

from nodekin.nodegraph import NodeGraph, split_sentences
from support.letters import Letters

TEXTS = [
    "Green tea is steamed. Black tea is not. Tea is hot.",
    "Rivers run to the sea. Some dry out. Tea grows along rivers.",
    "绿茶不发酵。红茶发酵。茶树喜欢温暖的山坡。",
    "河流入海。河水很红。The river 河 is green.",
]


QUERIES = ["Is tea hot?", "红茶", "河 river", "dry", "sea"]


class CountingStore(InMemoryVectorStore):
    """A vector store that rejects incorrect calls and counts all calls."""

    def __init__(self, embedding):
        super().__init__(embedding)
        self.asked = []
        self.added = []
        self.deleted = []
        self.fail_after = None

    def add_documents(self, documents, ids=None, **kwargs):
        if any(i in self.store for i in ids):
            raise ValueError("an id is there already")
        for number, (document, i) in enumerate(zip(documents, ids, strict=True)):
            if self.fail_after == number:
                self.fail_after = None
                raise ConnectionError("gone")
            super().add_documents([document], ids=[i], **kwargs)
        self.added += ids
        return ids

    def delete(self, ids=None, **kwargs):
        if any(i not in self.store for i in ids):
            raise ValueError("no such id")
        self.deleted += ids
        return super().delete(ids)

    def similarity_search_by_vector(self, embedding, k=4, **kwargs):
        self.asked.append(k)
        return super().similarity_search_by_vector(embedding, k, **kwargs)


def library(count=1, **settings):
    graph = NodeGraph(embed=Letters(), progress=False, **settings)
    graph.add(
        [
            Document(
                text if n < 4 else f"{text} {n}", metadata={"n": n, "even": n % 2 == 0}, id=f"d{n}"
            )
            for n, text in zip(range(4 * count), itertools.cycle(TEXTS), strict=False)
        ]
    )
    graph.create_node_group("sentence", split_sentences)
    return graph


def rows(results):
    return [(each.node.id, each.score) for each in results]
