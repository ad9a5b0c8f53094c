"""Import whole hierarchies of LlamaIndex nodes into a graph, with their relationships."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from llama_index.core.schema import BaseNode, MetadataMode

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from .imported_fields import LLAMA_INDEX_ID, id_in_llama_index
from .node_hierarchy import GroupName, NodeHierarchy


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Hold the outcome of an import.

    Attributes:
        documents: Ids of the documents, in the graph and in LlamaIndex.
        groups: Names of the groups, from the first below the documents down.
        blank: Ids of nodes without a text, which a graph leaves out.
        vectors: How many nodes' vectors were taken over.
    """

    documents: tuple[str, ...]
    groups: tuple[str, ...]
    blank: tuple[str, ...] = ()
    vectors: int = 0


def import_nodes(
    graph: NodeGraph,
    nodes: Iterable[BaseNode],
    *,
    documents: Iterable[BaseNode] = (),
    groups: Sequence[str] | GroupName | None = None,
    embed_key: str | None = None,
) -> ImportResult:
    """Make documents and groups of LlamaIndex nodes, with their relationships.

    Takes the nodes of ``HierarchicalNodeParser``, ``SentenceWindowNodeParser`` or any other
    parser, all nodes of a docstore (``docstore.docs.values()``), ``IndexNode`` objects with the
    nodes they refer to, or those of ``export_nodes``. Each level becomes a group, which can be
    searched, lifted and split further like any other. Results and ``export_nodes`` restore the
    original nodes: ids, texts, metadata, templates, relationships. A node's vector
    (``embedding``) is taken over if ``embed_key`` names the graph's embedding that made it, and if
    the text that LlamaIndex embedded is the one that is searched here.

    The parent of a node is its PARENT, else the node of its ``index_id``, else its SOURCE
    document. A missing SOURCE document is rebuilt from its nodes: each at its ``start_char_idx``
    if the texts agree, with the metadata that all have. A node without any of these is a document
    itself. Positions of nodes in their document are checked, and searched for if they are wrong.

    Importing more, or again, adds to the groups; a document with an existing id is replaced.
    Documents that are added to the graph in other ways have no nodes in these groups, nor has a
    document whose text is changed in other ways. The groups are part of the graph: one that is
    opened from its file has them, and the original nodes are not needed again.

    Args:
        graph: The node graph.
        nodes: The nodes, and documents among them, in any order.
        documents: The documents that the nodes were made from.
        groups: Names by level, the first below the documents first; or a function from a node to
            its group's name. By default the group noted by ``export_nodes``, else ``"level 1"``
            and so on.
        embed_key: The key of the graph's embedding whose model made the nodes' vectors,
            ``"default"`` for ``NodeGraph(embed=model)``; None to embed nodes anew when needed.

    Raises:
        TypeError: If something is no node, or has more than a text (an image, a class of yours).
        ValueError: If a parent is missing, nodes are below each other in a circle, two nodes
            differ under one id, the names don't fit the levels, or a group exists with another
            rule.
        LookupError: If the graph has no embedding of that key.
        EmbeddingError: If the vectors can't be of that model.

    Example:
        >>> from llama_index.core.node_parser import SentenceWindowNodeParser
        >>> from llama_index.core.schema import Document
        >>> parser = SentenceWindowNodeParser.from_defaults(
        ...     sentence_splitter=lambda text: text.split("|"), window_size=1
        ... )
        >>> document = Document(text="One.|Two.|Three.", id_="numbers")
        >>> graph = NodeGraph()
        >>> result = import_nodes(
        ...     graph, parser.get_nodes_from_documents([document]), documents=[document],
        ...     groups=["sentence"],
        ... )
        >>> result.documents, result.groups
        (('numbers',), ('sentence',))
        >>> [(node.text, node.start, node.metadata["window"]) for node in graph.nodes("sentence")]
        [('One.', 0, 'One. Two.'), ('Two.', 5, 'One. Two. Three.'), ('Three.', 10, 'Two. Three.')]
    """
    hierarchy = NodeHierarchy(nodes, documents)
    names = hierarchy.group_names(groups)
    families = hierarchy.families(names)
    parents = _parent_groups(hierarchy, names)
    for name in parents:
        if name in graph.groups and not graph.is_imported(name):
            raise ValueError(
                f"the group {name!r} is there with another rule; name the groups of the import "
                "otherwise: groups=[...]"
            )
    if embed_key is not None:
        embed_key = graph.embeddings.key(embed_key)
    ids = graph.add(list(hierarchy.documents.values()))
    for name, parent in parents.items():
        graph.import_group(name, families[name], parent, id_field=LLAMA_INDEX_ID)
    graph.build(*parents)
    vectors = 0 if embed_key is None else _take_vectors(graph, hierarchy, parents, embed_key)
    return ImportResult(tuple(ids), tuple(parents), tuple(hierarchy.blank), vectors)


def _take_vectors(
    graph: NodeGraph, hierarchy: NodeHierarchy, groups: Iterable[str], embed_key: str
) -> int:
    """Store the vectors of imported nodes; return how many."""
    vectors: dict[str, list[float]] = {}
    for group in groups:
        nodes = graph.nodes(group)
        for node, text in zip(nodes, graph.searched_texts(nodes), strict=True):
            original = hierarchy.nodes.get(id_in_llama_index(node))
            if original is None or original.embedding is None:
                continue
            # The same fields may stand in another order.
            embedded = original.get_content(MetadataMode.EMBED)
            if sorted(embedded.split("\n")) == sorted(text.split("\n")):
                vectors[text] = original.embedding
    graph.embeddings.put([*vectors], [*vectors.values()], embed_key)
    return len(vectors)


def _parent_groups(hierarchy: NodeHierarchy, names: Mapping[str, str]) -> dict[str, str]:
    """Return the parent group of each group, from the first level down."""
    parents: dict[str, str] = {}
    for node_id, name in names.items():
        parent = names.get(hierarchy.parents[node_id], ROOT)
        if parents.setdefault(name, parent) != parent or name in (parent, ROOT):
            raise ValueError(
                f"the nodes of group {name!r} stand below nodes of {parents[name]!r} and of "
                f"{parent!r}; a group has one parent group: name them apart, groups=function"
            )
    return parents
