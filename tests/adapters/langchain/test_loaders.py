"""LangChain's loaders give a graph its documents."""

import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from nodekin.nodegraph import NodeGraph

PAGES = [
    Document("Tea is a drink.", id="tea", metadata={"page": 1}),
    Document("河流入海。", metadata={"page": 2}),
]


class Lazy(BaseLoader):
    def lazy_load(self):
        yield from PAGES


class AtOnce(BaseLoader):
    """As older loaders are written."""

    def load(self):
        return list(PAGES)


@pytest.mark.parametrize("loader", [Lazy(), AtOnce()])
def test_a_loader_is_loaded(loader):
    graph = NodeGraph(progress=False)
    ids = graph.add(loader)
    assert ids[0] == "tea"
    assert [(n.text, n.metadata) for n in graph.nodes("ROOT")] == [
        (page.page_content, page.metadata) for page in PAGES
    ]
    assert graph.add(loader.lazy_load()) == graph.add(loader.load()) == ids
    assert graph.update(loader) == ids
    assert len(graph.nodes("ROOT")) == 2


def test_what_a_loader_raises_is_told_and_nothing_is_added():
    class Broken(BaseLoader):
        def lazy_load(self):
            yield PAGES[0]
            raise OSError("no such page")

    graph = NodeGraph(progress=False)
    with pytest.raises(OSError, match="no such page"):
        graph.add(Broken())
    assert graph.nodes("ROOT") == []


def test_an_empty_loader_adds_nothing():
    class Empty(BaseLoader):
        def lazy_load(self):
            yield from ()

    assert NodeGraph(progress=False).add(Empty()) == []
