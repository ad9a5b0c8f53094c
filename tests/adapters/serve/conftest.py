"""A small corpus, and the page of it."""

import pytest
from support.command_line import here, indexed, nodekin
from support.page_client import Client

from nodekin.adapters.serve.page_app import PageApp
from nodekin.nodegraph import Document, NodeGraph, PassageSplitter, split_sentences
from nodekin.retrievers import DefaultRetriever

__all__ = ["here", "indexed", "nodekin"]

TEXTS = {
    "tea/green.md": "# Green tea\n\nGreen tea is steamed. It keeps its colour.\n\n"
    "## Water\n\nThe water is not too hot.\n",
    "tea/black.md": "# Black tea\n\nBlack tea is fermented. Its leaves are dark.\n",
    "rivers.md": "# Rivers\n\nThe Yangtze is long. It runs to the sea.\n",
    "茶/茶经.md": "# 茶经\n\n陆羽写了《茶经》。他生活在唐代。🍵 绿茶不经过发酵。\n",
    "hostile.md": '# <img src=x onerror="document.title=1">\n\n'
    "<script>document.title = 'hacked'</script> Oolong [1](javascript:alert(1)).\n",
}


@pytest.fixture
def graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=i) for i, text in TEXTS.items()])
    graph.create_node_group("passage", PassageSplitter(20))
    graph.create_node_group("sentence", split_sentences, parent="passage")
    graph.build("sentence")
    return graph


@pytest.fixture
def retriever(graph) -> DefaultRetriever:
    return DefaultRetriever(graph, "passage")


@pytest.fixture
def app(retriever) -> PageApp:
    return PageApp(retriever, title="Tea & <b>rivers</b>")


@pytest.fixture
def client(app) -> Client:
    return Client(app)
