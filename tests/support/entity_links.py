"""Links of a group that is built by two graphs in turn."""

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.nodegraph.node import LinkedText

WITH_ANNA, WITHOUT = "The water of Anna is wet.", "Water is wet."


def names(passages: list[Node]) -> list[LinkedText]:
    return [LinkedText("Anna", [node for node in passages if "Anna" in node.text])]


def opened(store: str) -> NodeGraph:
    """Return a graph as another process would open it. Only the store is shared."""
    graph = NodeGraph(store=store, progress=False)
    graph.create_node_group("entity", names, scope="group")
    return graph


def of_anna(graph: NodeGraph) -> list[str]:
    """Return the ids of all documents that mention Anna."""
    (anna,) = graph.nodes("entity")
    return [link.target for link in anna.links]


def fill(graph: NodeGraph, third: str = WITH_ANNA) -> None:
    graph.add(
        [
            Document("The tea of Anna is green.", id="one"),
            Document("The tea of Anna is cold.", id="two"),
            Document(third, id="three"),
        ]
    )
    graph.build("entity")


def changed_in_turns(store: str, first: str, then: str) -> list[list[str]]:
    """Change a document with two graphs in turn, and return the links of all three graphs.

    The third graph is opened after the changes.
    """
    with opened(store) as a, opened(store) as b:
        fill(a, then)
        b.add(Document("x y", id="four"))
        b.build("entity")
        a.add([Document(first, id="three")])
        a.build("entity")
        b.add([Document(then, id="three")])
        b.build("entity")
        with opened(store) as c:
            return [sorted(of_anna(graph)) for graph in (a, b, c)]
