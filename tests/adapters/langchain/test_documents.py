"""Documents of a graph, by id: removal through the retriever."""

import pytest
from support.langchain_runs import call

from nodekin.adapters.langchain import NodeGraphRetriever


def ids(documents):
    return [document.id for document in documents]


@pytest.fixture
def shelf():
    return NodeGraphRetriever.from_texts(
        ["Green tea is steamed.", "Black tea is fermented.", "Coffee is roasted."],
        ids=["green", "black", "coffee"],
    )


async def test_delete_removes_documents_and_their_nodes(shelf, mode):
    assert "green" in ids(shelf.invoke("tea"))
    delete = shelf.delete(["green", "none"]) if mode == "sync" else await shelf.adelete(["green"])
    assert delete is True
    assert ids(await call(shelf, mode, "tea")) == ["black"]
    assert ids(await call(shelf, mode, "steamed")) == []


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda r: r.delete("green"), TypeError, r"ids must be a list of ids, got 'green'"),
        (lambda r: r.delete(None), ValueError, "requires the ids"),
        (lambda r: r.delete(), TypeError, "missing 1 required positional argument: 'ids'"),
        (lambda r: r.delete([r.graph.nodes("FineChunk")[0].id]), ValueError, "derived from"),
        (lambda r: NodeGraphRetriever(max).delete(["a"]), ValueError, "delete requires a graph"),
    ],
)
def test_wrong_deletion_raises(shelf, wrong, error, says):
    with pytest.raises(error, match=says):
        wrong(shelf)
