"""A small corpus, and the page of it."""

import pytest
from command_line import here, indexed, nodekin
from page_client import Client

from nodekin.adapters.serve.page_app import PageApp
from nodekin.adapters.serve.tried_setups import TriedSetups
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers.evaluation.setups.opening import SetupOpener
from nodekin.retrievers.evaluation.setups.setup_file import SetupFile

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

GROUPS = {
    "passage": {"transform": "PassageSplitter", "chunk_size": 20},
    "sentence": {"transform": "split_sentences", "parent": "passage"},
}

SETUPS = {
    "default": {"type": "DefaultRetriever", "target": "passage"},
    "words": {"type": "Retriever", "group_name": "sentence", "target": "passage"},
}


@pytest.fixture
def graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=i) for i, text in TEXTS.items()])
    return graph


@pytest.fixture
def setups(graph, tmp_path) -> TriedSetups:
    tried = TriedSetups(
        SetupOpener(SetupFile(SETUPS, GROUPS), graph), tmp_path / "kept" / "setups.toml"
    )
    tried.path.parent.mkdir()
    graph.build("sentence")
    return tried


@pytest.fixture
def app(setups) -> PageApp:
    return PageApp(setups, title="Tea & <b>rivers</b>")


@pytest.fixture
def client(app) -> Client:
    return Client(app)
