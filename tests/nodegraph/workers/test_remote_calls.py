"""A call in another process gets the answers of the process that made it."""

import queue
import threading
from collections.abc import Callable, Iterator

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph, TransformError
from nodekin.nodegraph.models.answer_cache import AnswerCache, cached_answer
from nodekin.nodegraph.workers.remote_calls import CallServer, converse, to_bytes


class Beside:
    """Serve calls in a thread, by the messages that a process would get."""

    def __init__(self) -> None:
        self.messages: queue.Queue[bytes | None] = queue.Queue()
        self.replies: queue.Queue[bytes] = queue.Queue()
        server = CallServer(self.messages.get, self.replies.put)
        self.thread = threading.Thread(target=server.serve, daemon=True)
        self.thread.start()

    def exchange(self, message: bytes) -> bytes:
        self.messages.put(message)
        return self.replies.get(timeout=300)

    def load(self, function: Callable[..., object]) -> None:
        converse(self.exchange, ("load", "it", to_bytes(function)))


@pytest.fixture
def beside() -> Iterator[Beside]:
    served = Beside()
    yield served
    served.messages.put(None)
    served.thread.join(300)


def call(beside: Beside, node: Node) -> object:
    return converse(beside.exchange, ("call", "it", node), node.graph)


def test_a_node_asks_the_graph_of_the_caller(beside: Beside, graph: NodeGraph) -> None:
    beside.load(lambda node: [node.parent.id, *(n.text for n in node.graph.nodes("line"))])
    (first, *_) = graph.nodes("line")
    assert call(beside, first) == ["1", "a b", "c", "d"]


def test_what_the_graph_refuses_is_raised_where_it_was_asked(
    beside: Beside, graph: NodeGraph
) -> None:
    def tries(node: Node) -> list[str]:
        asks = (
            lambda: node.graph.find("nothing"),
            lambda: node.graph.find("nothing")(node),
            lambda: node.graph.node("gone"),
            lambda: node.graph.add("more"),
            lambda: node.embedding(),
        )
        messages = []
        for ask in asks:
            try:
                ask()
                messages.append("")
            except Exception as error:
                messages.append(f"{type(error).__name__}: {error}")
        return messages

    beside.load(tries)
    late, unknown, gone, adds, embedding = call(beside, graph.node("1"))  # type: ignore[misc]
    assert late == ""
    assert unknown.startswith("UnknownGroupError: no node group 'nothing'")
    assert gone.startswith("LookupError: no node 'gone'")
    assert "a transform that runs in another process has no graph.add" in adds
    assert "the graph has no embedding" in embedding


def test_a_node_without_a_graph_has_no_kin_there_either(beside: Beside) -> None:
    beside.load(lambda node: node.parent)
    with pytest.raises(ValueError, match="belongs to no graph, so it has no kin"):
        call(beside, Node("alone", id="1", parent_id="2"))


def test_what_a_model_answers_is_kept_where_the_caller_keeps_answers(beside: Beside) -> None:
    asked = []

    def ask(text: str) -> str:
        return cached_answer("model", text, lambda: asked.append(text) or f"{len(asked)}.")

    beside.load(ask)
    message = ("call", "it", "What is tea?")
    assert [converse(beside.exchange, message) for _ in range(2)] == ["1.", "2."]
    kept = AnswerCache()
    assert [converse(beside.exchange, message, answers=kept) for _ in range(2)] == ["3.", "3."]


def test_a_group_that_needs_itself_is_an_error_from_a_process_too() -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document("a", id="1"))
    graph.create_node_group("ring", lambda node: node.graph.find("ring")(node), trans_node=True)
    with pytest.raises(TransformError, match="group 'ring' needs itself"):
        graph.build("ring", workers=1)


def test_the_way_back_ends(beside: Beside) -> None:
    beside.load(lambda node: node.root.text)
    node = NodeGraph(progress=False).reader.attach(Node("x", id="1", document_id="1"))
    message = to_bytes(("call", "it", node))
    beside.exchange(message)  # a question, to which no answer will come
    beside.messages.put(None)
    assert b"EOFError" in beside.replies.get(timeout=300)
