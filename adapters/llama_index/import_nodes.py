"""Take whole hierarchies of LlamaIndex nodes into a graph, every node with its kin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from llama_index.core.schema import BaseNode

from ...nodegraph import ROOT, NodeGraph
from .node_hierarchy import Forest, NameGroup
from .node_lookup import Replay, replayed


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Say what came of an import.

    Attributes:
        documents: Ids of the documents, as the graph and LlamaIndex know them.
        groups: Names of the groups, from the first below the documents down.
        blank: Ids of nodes without a text, of which a graph makes none.
    """

    documents: tuple[str, ...]
    groups: tuple[str, ...]
    blank: tuple[str, ...] = ()


def import_nodes(
    graph: NodeGraph,
    nodes: Iterable[BaseNode],
    *,
    documents: Iterable[BaseNode] = (),
    groups: Sequence[str] | NameGroup | None = None,
) -> ImportResult:
    """Make documents and groups of LlamaIndex nodes, with the relationships they have.

    Takes what ``HierarchicalNodeParser``, ``SentenceWindowNodeParser`` or any other parser made,
    all nodes of a docstore (``docstore.docs.values()``), ``IndexNode``s with the nodes they stand
    for, or what ``export_nodes`` made. Each level becomes a group, which can be searched, lifted
    and split further like any other. A result, and ``export_nodes``, give the old nodes again:
    ids, texts, metadata, templates, relationships. Vectors are left out: which model made them is
    not known.

    A node stands below its PARENT, else below the node that its ``index_id`` names, else below its
    SOURCE document. Where a SOURCE is not given, a document of its id is put together from its
    nodes, each at its ``start_char_idx`` where that fits, and with the metadata they share. A node
    without any of these is a document itself. Where nodes stand in their document is checked, and
    found out anew where it is not true.

    Importing more, or again, adds to the groups; a document whose id is known is replaced. What is
    added to the graph by other ways has no nodes in them. A graph that was kept in a file gets the
    same nodes imported again when it is opened, which builds nothing.

    Args:
        graph: The node graph.
        nodes: The nodes, and documents among them, in any order.
        documents: The documents that the nodes were made from.
        groups: Names by level, the first below the documents first; or a function from a node to
            its group's name. By default the group that ``export_nodes`` noted, else ``"level 1"``
            and so on.

    Raises:
        TypeError: If something is no node, or has more than a text (an image, a class of yours).
        ValueError: If a parent is missing, nodes stand below each other in a circle, two differ
            under one id, the names don't fit the levels, or a group is there with another rule.

    Example:
        >>> from llama_index.core.node_parser import SentenceWindowNodeParser
        >>> from llama_index.core.schema import Document
        >>> parser = SentenceWindowNodeParser.from_defaults(
        ...     sentence_splitter=lambda text: text.split("|"), window_size=1
        ... )
        >>> document = Document(text="One.|Two.|Three.", id_="numbers")
        >>> graph = NodeGraph()
        >>> made = import_nodes(
        ...     graph, parser.get_nodes_from_documents([document]), documents=[document],
        ...     groups=["sentence"],
        ... )
        >>> made.documents, made.groups
        (('numbers',), ('sentence',))
        >>> [(node.text, node.start, node.metadata["window"]) for node in graph.nodes("sentence")]
        [('One.', 0, 'One. Two.'), ('Two.', 5, 'One. Two. Three.'), ('Three.', 10, 'Two. Three.')]
    """
    forest = Forest(nodes, documents)
    names = forest.groups(groups)
    made = forest.pieces(names)
    parents = _parent_groups(forest, names)
    for name in parents:
        if name in graph.groups and replayed(graph, name) is None:
            raise ValueError(
                f"the group {name!r} is there with another rule; name the groups of the import "
                "otherwise: groups=[...]"
            )
    ids = graph.add(list(forest.documents.values()))
    for name, parent in parents.items():
        before = replayed(graph, name)
        rule = Replay({**(before.pieces if before else {}), **made[name]})
        graph.create_node_group(name, rule, parent, version=rule.version, replace=True)
    return ImportResult(tuple(ids), tuple(parents), tuple(forest.blank))


def _parent_groups(forest: Forest, names: Mapping[str, str]) -> dict[str, str]:
    """Return of each group its parent group, from the first level down."""
    parents: dict[str, str] = {}
    for i, name in names.items():
        above = names.get(forest.parents[i] or "", ROOT)
        if parents.setdefault(name, above) != above or name in (above, ROOT):
            raise ValueError(
                f"the nodes of group {name!r} stand below nodes of {parents[name]!r} and of "
                f"{above!r}; a group has one parent group: name them apart, groups=function"
            )
    return parents
