"""Groups of every kind, and a comparison of a graph with a newly built graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.nodegraph.node import LinkedText

TIMEOUT = 60
"""The timeout of a thread in seconds. If it is exceeded, the test reports a deadlock."""


def lines(text: str) -> list[str]:
    return text.splitlines()


def halves(text: str) -> list[str]:
    """Return the first line and the complete text."""
    return [*text.splitlines()[:1], text]


def words(text: str) -> list[str]:
    if "bad" in text:
        raise ValueError(text)
    return text.split()


def picky(text: str) -> list[str]:
    """Return the words of a text in upper case. Texts that contain "cup" raise an error."""
    if "cup" in text:
        raise ValueError(text)
    return [word.upper() for word in text.split()]


def labels(word: Node) -> list[LinkedText]:
    """Return a label with the ancestors of a word. The label is linked to these ancestors."""
    line = word.parent
    assert line is not None
    if word.text == "worse":
        raise ValueError(line.text)
    label = f"{word.metadata.get('topic')}, {word.text} in {line.text!r}"
    return [
        LinkedText(Node(label, {"of": word.text}), [word, line]),
        LinkedText("root", [word.root], "root"),
    ]


def everything(nodes: list[Node]) -> list[LinkedText]:
    return [
        LinkedText(f"{len(nodes)} nodes", nodes),
        *(LinkedText(n.text, [n], "copy") for n in nodes),
    ]


def initials(text: str) -> str:
    return "".join(word[0] for word in text.split())


Declaration = tuple[Callable[..., Any], dict[str, Any]]

GROUPS: dict[str, Declaration] = {
    "title": (initials, {}),
    "line": (lines, {}),
    "word": (words, {"parent": "line"}),
    "label": (labels, {"parent": "word", "trans_node": True}),
    "all": (everything, {"parent": "line", "scope": "group"}),
    "initial": (initials, {"parent": "all"}),
    "documents": (everything, {"scope": "group"}),
}


def declare(
    graph: NodeGraph,
    groups: dict[str, Declaration],
    num_workers: int = 0,
    around: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda transform: transform,
) -> None:
    """Create node groups in a graph. The function ``around`` wraps each transform."""
    for name, (transform, options) in groups.items():
        settings = {"version": transform.__name__, "num_workers": num_workers, "replace": True}
        graph.create_node_group(name, around(transform), **{**settings, **options})


def facts(graph: NodeGraph, group: str) -> list[dict[str, Any]]:
    """Return all fields of the nodes in a group, which is built if necessary."""
    with graph.reader.reading(group):
        nodes = graph.nodes(group)
        orders = [node.order for node in nodes]
        assert orders == sorted(set(orders)) or group == "ROOT"
        return [
            {
                **{"id": node.id, "text": node.text, "content": node.content},
                **{"metadata": node.metadata, "own": dict(node.own_metadata)},
                **{"span": (node.start, node.end, node.offset), "document": node.document_id},
                "parent": node.parent and (node.parent.id, node.parent.text),
                "links": [(k.target, k.type, k.weight) for k in node.links],
                "linked": [linked.text for linked in graph.linked(node)],
                "incoming": sorted(
                    (k.source, k.type, k.weight)
                    for k in graph.reader.links_of([node.id], incoming=True)[0]
                ),
            }
            for node in nodes
        ]


def whole(graph: NodeGraph, groups: dict[str, Declaration]) -> dict[str, Any]:
    """Return all fields of all nodes in a graph, starting with the last group."""
    names = [*reversed(groups), "ROOT"]
    # groups are processed one at a time, so that each of them is tested separately
    for name in names:
        texts = [(n.id, n.text, n.parent and n.parent.id) for n in graph.nodes(name)]
        assert all(text is not None for text in texts)
    graph.build(*groups, on_error="skip")
    known: dict[str, Any] = {name: facts(graph, name) for name in names}
    known["children"] = {
        node.id: {name: [n.id for n in nodes] for name, nodes in node.children.items()}
        for name in names
        for node in graph.nodes(name)
    }
    known["failures"] = sorted((f.group, f.document, str(f.error)) for f in graph.failures)
    return known


def anew(graph: NodeGraph, groups: dict[str, Declaration]) -> dict[str, Any]:
    """Build a new graph from the documents of a graph, and return all fields of its nodes."""
    nodes = graph.nodes("ROOT")
    key = repr([(node.id, node.text, dict(node.own_metadata)) for node in nodes]), repr(groups)
    if key not in _ANEW:
        copy = NodeGraph(on_error="skip", progress=False)
        declare(copy, groups)
        copy.add([Document(node.text, node.own_metadata, id=node.id) for node in nodes])
        _ANEW[key] = whole(copy, groups)
    return _ANEW[key]


_ANEW: dict[tuple[str, str], dict[str, Any]] = {}


def check_against_fresh_build(graph: NodeGraph, groups: dict[str, Declaration]) -> None:
    """Check that a graph is equal to a new graph that is built from its documents."""
    known, expected = whole(graph, groups), anew(graph, groups)
    for part, value in expected.items():
        assert known[part] == value, f"{part} differs from a fresh build"
