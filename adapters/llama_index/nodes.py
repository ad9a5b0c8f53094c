"""Turn nodes into LlamaIndex nodes and back, losing nothing."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from copy import deepcopy
from functools import partial
from itertools import groupby
from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import (
    BaseNode,
    ImageDocument,
    ImageNode,
    IndexNode,
    MediaResource,
    NodeRelationship,
    NodeWithScore,
    ObjectType,
    RelatedNodeInfo,
    RelatedNodeType,
    TextNode,
)
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.schema import Node as LlamaIndexNode

from ...nodegraph.derivation import Stamp
from ...nodegraph.document import Document, declared_search_text
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Kin, Node
from ...nodegraph.search_text import SearchText
from ...retrievers.filters import Filter
from ...retrievers.foreign.outputs import ForeignNode
from ...retrievers.indexes.exact_index import Exact
from ...retrievers.results import ScoredNode
from ..frameworks import (
    copied_metadata,
    different_text,
    evidence_dicts,
    explain_match,
    node_of,
    restore_inherited,
    shorten,
)

IMPORT_FIELDS = LLAMA_INDEX_ID, LLAMA_INDEX_PROPERTIES = "llama_index_id", "llama_index_properties"
"""Fields of an imported node: its id in LlamaIndex, and what makes it differ from an exported one.

``import_nodes`` writes them. ``to_text_node`` restores the original node from them, without them.
"""

NODE_CLASSES: dict[str, Any] = {
    cls.class_name(): cls
    for cls in (TextNode, IndexNode, ImageNode, LlamaIndexNode, LlamaIndexDocument, ImageDocument)
}
"""LlamaIndex's classes of nodes by their names."""

TEMPLATES = ("metadata_template", "metadata_separator", "text_template", "mimetype")
"""The properties of an imported node, besides those below.

- ``embed``, ``llm``: the names of the excluded fields;
- ``fields``: the names of all fields in their order;
- ``class``, ``more``: the class of a node that is more than a text, and its other fields;
- ``related``, ``span``: ids of related nodes, and the place in the document, where the node was
  imported without what stands around it.

Each is there where it differs from what an exported node has.
"""


def original_id(node: Node) -> str | None:
    """Return the id that a node had in LlamaIndex, None if it was not imported."""
    value = node.own_metadata.get(LLAMA_INDEX_ID) if node.group != ROOT else None
    return value if isinstance(value, str) and value else None


def id_in_llama_index(node: Node) -> str:
    """Return the id of the LlamaIndex node that ``to_text_node`` makes of a node."""
    return original_id(node) or node.id


def parent_id_in_llama_index(node: Node) -> str | None:
    """Return the id that a node's parent has in LlamaIndex; None below documents."""
    if node.parent_id in (None, node.document_id):
        return None
    inherited_id = node.inherited.get(LLAMA_INDEX_ID)
    if isinstance(inherited_id, str) and inherited_id:
        if original_id(node) is not None:  # the parent of an imported node was imported too
            return inherited_id
        with suppress(LookupError):  # it was removed a moment ago
            if node.graph is not None and (parent := node.parent) is not None:
                return id_in_llama_index(parent)
    return node.parent_id


def original_properties(node: Node) -> dict[str, Any]:
    """Return the properties of an imported node."""
    written = node.own_metadata.get(LLAMA_INDEX_PROPERTIES)
    if written is None:
        return {}
    with suppress(TypeError, ValueError):  # a user's field that has the same name by chance
        properties = json.loads(written)
        return properties if isinstance(properties, dict) else {}
    return {}


def original_metadata(node: Node) -> Mapping[str, Any]:
    """Return a node's metadata as it is in LlamaIndex: the same fields in the same order."""
    metadata = node.metadata
    for field in IMPORT_FIELDS:
        metadata.pop(field, None)
    fields = original_properties(node).get("fields")
    if not isinstance(fields, list):
        return metadata
    return {field: metadata[field] for field in fields if field in metadata}


Relationships = dict[NodeRelationship, RelatedNodeType]

RECORD = "nodekin"
"""Key in the metadata of a node's SOURCE, under which the rest of the graph's node is recorded.

There it survives JSON, docstores, vector stores and pickle, and is no part of the node's own
metadata, so neither of its hash nor of what models read.
"""


def related(node_id: str, group: str | None = None) -> RelatedNodeInfo:
    """Refer to a node by its id: its metadata and hash would be copied into every neighbour."""
    node_type = ObjectType.DOCUMENT if group == ROOT else ObjectType.TEXT
    return RelatedNodeInfo(node_id=node_id, node_type=node_type)


def link_neighbours(previous: TextNode, following: TextNode) -> None:
    """Relate two nodes as PREVIOUS and NEXT."""
    previous.relationships[NodeRelationship.NEXT] = related(following.node_id)
    following.relationships[NodeRelationship.PREVIOUS] = related(previous.node_id)


def fixed_relationships(node: Node) -> Relationships:
    """Return the SOURCE of a node, with its record, and its PARENT.

    A document, and a node made from a whole group, is its own source. A node below a document has
    no PARENT, as in LlamaIndex, whose parents are nodes and never documents.
    """
    source = RelatedNodeInfo(
        node_id=node.document_id or node.id,
        node_type=ObjectType.DOCUMENT,
        metadata={RECORD: node_record(node)},
        hash=_source_hash(node),
    )
    relationships: Relationships = {NodeRelationship.SOURCE: source}
    if (parent_id := parent_id_in_llama_index(node)) is not None:
        relationships[NodeRelationship.PARENT] = related(parent_id)
    return relationships


def _source_hash(node: Node) -> str | None:
    """Return the hash that a node's document has in LlamaIndex; None outside of a graph.

    A hash takes long for a long document, and is kept for as long as the document is the same. The
    graph must be held.
    """
    graph, document_id = node.graph, node.document_id
    if not isinstance(graph, NodeGraph) or not document_id:
        return None
    hashes: dict[str, tuple[Stamp, str]] = graph.reader.shared("hashes in LlamaIndex", dict)
    stamp = graph.reader.document_stamp(document_id)
    if stamp is None:  # it was removed a moment ago
        return None
    if hashes.get(document_id, (None, ""))[0] != stamp:
        root = graph.node(document_id)
        fields = dict(original_metadata(root))
        hashes[document_id] = stamp, LlamaIndexDocument(text=root.text, metadata=fields).hash
    return hashes[document_id][1]


def all_relationships(node: Node, groups: Collection[str] | None = None) -> Relationships:
    """Return all relationships of a node, also to its children and neighbours in its graph.

    Builds nothing. CHILD is absent on leaves; PREVIOUS and NEXT lead across parents. The graph must
    be held.

    Args:
        node: The node; one that is in no graph any more has neither children nor neighbours.
        groups: The groups of its children. None for those that were imported.
    """
    relationships, graph = fixed_relationships(node), node.graph
    if (passed := original_properties(node).get("related")) is not None:
        return {**relationships, **_related_by_name(passed)}
    if not isinstance(graph, NodeGraph):
        return relationships
    with suppress(LookupError):  # it was removed or changed a moment ago
        before, after = graph.reader.neighbours(node)
        if before is not None:
            relationships[NodeRelationship.PREVIOUS] = related(id_in_llama_index(before))
        if after is not None:
            relationships[NodeRelationship.NEXT] = related(id_in_llama_index(after))
        children = [related(id_in_llama_index(n)) for n in _children(graph, node, groups)]
        if children:
            relationships[NodeRelationship.CHILD] = children
    return relationships


def _related_by_name(given: Mapping[str, str | list[str]]) -> Relationships:
    return {
        NodeRelationship[name]: related(ids) if isinstance(ids, str) else [*map(related, ids)]
        for name, ids in given.items()
    }


def _children(graph: NodeGraph, node: Node, groups: Collection[str] | None) -> Iterator[Node]:
    for name in graph.reader.groups_below(node.group):
        if name in (graph.imports if groups is None else groups):
            # What was made from the whole group has no parent, only members.
            yield from (n for n in graph.reader.children_in(name, node) if n.parent_id == node.id)


def node_record(node: Node) -> dict[str, Any]:
    """Return what a LlamaIndex node has no field for, as plain values."""
    own, inherited = node.own_metadata, node.inherited
    visible = original_metadata(node) if inherited else {}
    hidden = {f: value for f, value in inherited.items() if f in own or f not in visible}
    record = {
        "group": node.group,
        "id": node.id,
        "order": node.order,
        "document_id": node.document_id or None,
        "parent_id": node.parent_id,
        "offset": node.offset,
        "inherited": [field for field in inherited if field not in hidden] or None,
        "hidden": deepcopy(hidden) if hidden else None,
        "own": {f: own[f] for f in IMPORT_FIELDS if f in own} or None,
        "search_text": node.search_text and node.search_text.to_row(),
        "inherited_search_text": node.inherited_search_text and node.inherited_search_text.to_row(),
    }
    content = node.content if isinstance(node.content, str) else str(node.content)
    record = {name: value for name, value in record.items() if value is not None}
    return {**record, **different_text(node, content)}


def read_record(node: Any) -> dict[str, Any] | None:
    """Return the record of a LlamaIndex node that was made of a graph's node; None of others."""
    source = node.source_node
    record = None if source is None else source.metadata.get(RECORD)
    return record if isinstance(record, dict) and "group" in record else None


# Fields of a file that LlamaIndex's own reader hides from models, too.
_FILE_FIELDS = (
    *("file_name", "file_type", "file_size"),
    *("creation_date", "last_modified_date", "last_accessed_date"),
    *("page_unit", "page_count", "encoding"),
)

_IMPORTED = frozenset(IMPORT_FIELDS)

_HIDDEN = frozenset((*_FILE_FIELDS, *IMPORT_FIELDS))


def to_text_node(node: Node, relationships: Relationships | None = None) -> TextNode:
    """Make a LlamaIndex ``TextNode`` of a node, sharing nothing with it.

    Choose ``export_nodes`` for whole groups that are to be independent of the graph.

    The text is the node's content (its text, if the content is no text), the id the node's;
    ``start_char_idx`` and ``end_char_idx`` count in the source document. The metadata is the
    node's own and inherited fields, flat, as users know them, and nothing else. The name, type,
    size and dates of a file are hidden from models. Nothing depends on a query, so that ``hash``
    is the same in every retrieval.

    SOURCE is the document, PARENT the parent if that is no document, PREVIOUS and NEXT are its
    neighbours, CHILD its children in groups that were imported. All are ids only.

    A node that ``import_nodes`` imported is restored: its id, text, metadata, hash, parent,
    templates and excluded fields are the original ones. One that a retriever of LlamaIndex
    returned (``as_retriever``) is copied as it was.

    Args:
        node: The node.
        relationships: Other relationships than ``all_relationships``.

    Raises:
        TypeError: If it is no node.
        ValueError: If the node has no id, as LlamaIndex refers to nodes by their ids.

    Example:
        >>> node = Node("Tea is a drink.", {"page": 3}, id="n1", group="line", document_id="d1")
        >>> text_node = to_text_node(node)
        >>> text_node.text, text_node.node_id, text_node.ref_doc_id, text_node.metadata
        ('Tea is a drink.', 'n1', 'd1', {'page': 3})
        >>> text_node.get_content("llm")
        'page: 3\\n\\nTea is a drink.'
    """
    if not isinstance(node, Node):
        raise TypeError(f"to_text_node takes a nodekin Node, not {node!r:.80}")
    with _held(node.graph):
        return _text_node(node, relationships)


def _held(graph: Kin | None) -> AbstractContextManager[None]:
    return graph.reader.reading() if isinstance(graph, NodeGraph) else nullcontext()


def _text_node(node: Node, relationships: Relationships | None = None) -> TextNode:
    if isinstance(node, ForeignNode) and isinstance(node.original, BaseNode):
        original: Any = node.original.model_copy(deep=True)
        retrieved: TextNode = original
        return retrieved
    fields = _fields(node)
    fields["relationships"] = all_relationships(node) if relationships is None else relationships
    properties = original_properties(node)
    cls = NODE_CLASSES.get(properties.get("class", ""), TextNode)
    fields.update(properties.get("more", {}))
    if not issubclass(cls, TextNode):
        fields["text_resource"] = MediaResource(text=fields["text"])
        fields = {name: value for name, value in fields.items() if name in cls.model_fields}
    text_node: TextNode = cls(**fields)
    return text_node


def to_document(node: Node) -> LlamaIndexDocument:
    """Make a LlamaIndex document of a node, as ``to_text_node`` makes a node."""
    own = to_text_node(node, {})
    if isinstance(own, LlamaIndexDocument):
        return own
    names = ("metadata_template", "metadata_separator", "text_template")
    return LlamaIndexDocument(
        text=own.text,
        metadata=own.metadata,
        id_=own.node_id,
        excluded_embed_metadata_keys=own.excluded_embed_metadata_keys,
        excluded_llm_metadata_keys=own.excluded_llm_metadata_keys,
        **{name: getattr(own, name) for name in names},
    )


def _fields(node: Node) -> dict[str, Any]:
    """Return the arguments of a ``TextNode`` for a node, but for its relationships."""
    if not node.id:
        raise ValueError(f"{node!r} has no id yet; take it from a graph, or give it one")
    node_id, metadata, content, properties = node.id, node.metadata, node.content, {}
    hidden: list[str] = []
    if metadata:
        if not _IMPORTED.isdisjoint(metadata):
            properties = original_properties(node)
            node_id, metadata = id_in_llama_index(node), dict(original_metadata(node))
        hidden = hidden_fields(metadata)
    searched = node.search_text or node.inherited_search_text
    if searched is not None and searched.fields is None and not properties:  # of LlamaIndex
        properties = embed_properties(searched, metadata)
    if metadata:
        metadata = copied_metadata(node, metadata)
    fields = {
        "id_": node_id,
        "text": content if isinstance(content, str) else str(content),
        "metadata": metadata,
        "excluded_embed_metadata_keys": [*hidden],
        "excluded_llm_metadata_keys": hidden,
        "start_char_idx": node.start,
        "end_char_idx": node.end,
    }
    if "span" in properties:
        fields["start_char_idx"], fields["end_char_idx"] = properties["span"]
    if properties:
        fields["excluded_embed_metadata_keys"] = [*properties.get("embed", hidden)]
        fields["excluded_llm_metadata_keys"] = [*properties.get("llm", hidden)]
        fields.update((name, properties[name]) for name in TEMPLATES if name in properties)
    return fields


def to_node_with_score(result: ScoredNode) -> NodeWithEvidence:
    """Make a LlamaIndex ``NodeWithScore`` of a result, with its evidence.

    Example:
        >>> to_node_with_score(ScoredNode(Node("Tea", id="n1"), 0.0)).score
        0.0
    """
    return to_nodes_with_scores([result])[0]


def to_nodes_with_scores(results: Iterable[ScoredNode]) -> list[NodeWithEvidence]:
    """Make LlamaIndex results of many. Results of one graph in a row are of one state of it."""
    nodes: list[NodeWithEvidence] = []
    for graph, of_graph in groupby(results, lambda result: result.node.graph):
        with _held(graph):
            for result in of_graph:
                text_node, score = _text_node(result.node), float(result.score)
                nodes.append(NodeWithEvidence(node=text_node, score=score, evidence=result))
                if result.node.pages is not None:  # pages are those of the document as it is now
                    nodes[-1].evidence  # noqa: B018  # makes it
    return nodes


def from_text_node(text_node: BaseNode) -> Node | Document:
    """Turn a LlamaIndex node back into the node it was made of, or into a source document.

    A node that ``to_text_node`` made gives that node, also after a docstore, JSON or pickle
    (without a graph: ``graph.node(node.id)`` is the one in the graph). Fields that were added to
    its metadata since become the node's own.

    Any other node, a LlamaIndex ``Document`` or a chunk of a parser, is a text that no graph has
    derived: it becomes a nodekin ``Document`` with its id, text and metadata, as in ``graph.add``.

    Raises:
        TypeError: If it is no LlamaIndex node.

    Example:
        >>> from_text_node(to_text_node(Node("Tea", {"page": 3}, id="n1", group="line")))
        Node('Tea', group='line', id='n1')
        >>> from_text_node(TextNode(text="Tea is a drink.", id_="tea"))
        Document(text='Tea is a drink.', metadata={}, id='tea')
    """
    if not isinstance(text_node, BaseNode):
        raise TypeError(
            f"from_text_node takes a LlamaIndex node, not {text_node!r:.80}; of a NodeWithScore "
            "give the .node"
        )
    metadata = deepcopy(text_node.metadata)
    text = text_node.get_content()
    record = read_record(text_node)
    if not isinstance(text_node, TextNode) or record is None:
        search_text = declared_search_text(text_node)
        return Document(text, metadata, id=text_node.node_id or None, search_text=search_text)
    record = deepcopy(record)
    hidden = record.get("hidden", {})
    inherited = restore_inherited(metadata, record.get("inherited", []), hidden)
    return Node(
        record.get("text", text),
        {**metadata, **record.get("own", {})},
        record.get("content", text),
        text_node.start_char_idx,
        text_node.end_char_idx,
        record["id"],
        record["group"],
        record.get("document_id", ""),
        record.get("parent_id"),
        record.get("offset"),
        record["order"],
        inherited,
        _search_text(record, "search_text"),
        _search_text(record, "inherited_search_text"),
    )


def _search_text(record: Mapping[str, Any], name: str) -> SearchText | None:
    return None if name not in record else SearchText.from_row(record[name])


def embed_properties(searched: SearchText, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return by which properties LlamaIndex embeds, and shows, what is declared here."""
    template = searched.template.replace("{metadata}", "{metadata_str}")
    return {
        "embed": [name for name in metadata if name in searched.excluded],
        "llm": [name for name in metadata if name in searched.excluded_llm],
        "metadata_template": searched.field_template,
        "metadata_separator": searched.separator,
        "text_template": template.replace("{text}", "{content}"),
    }


def hidden_fields(metadata: Mapping[str, Any]) -> list[str]:
    """Return the metadata fields that are hidden from models."""
    if _HIDDEN.isdisjoint(metadata):
        return []
    return [field for field in metadata if field in _HIDDEN]


def user_fields(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node's metadata without the fields that ``import_nodes`` writes."""
    return {name: value for name, value in metadata.items() if name not in IMPORT_FIELDS}


class NamedByClass:
    """Let LlamaIndex serialise an object under the name of its class."""

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex serialises it under."""
        return cls.__name__


class NodeWithEvidence(NamedByClass, NodeWithScore):
    """Hold a node, its score and its evidence, wherever LlamaIndex holds a ``NodeWithScore``.

    The evidence depends on the query, so it is not in the node's metadata, which LlamaIndex
    compares nodes by. Postprocessors, fusion, query engines, copies and pickles keep it.
    ``to_dict()`` and JSON leave it out, as it is larger than the node. ``dump_nodes`` writes it.

    Args:
        evidence: The matches that led to the node, the best first, or the result that has them.
        **data: The fields of a ``NodeWithScore``.
    """

    _evidence: ScoredNode | list[dict[str, Any]] = PrivateAttr()

    def __init__(
        self, *, evidence: ScoredNode | Sequence[dict[str, Any]] = (), **data: Any
    ) -> None:
        super().__init__(**data)
        self._evidence = evidence if isinstance(evidence, ScoredNode) else [*evidence]

    @property
    def evidence(self) -> list[dict[str, Any]]:
        """The matches that led to the node, the best first.

        Each is a dict with ``id``, ``group``, ``text``, ``start``, ``end``, ``score``,
        ``similarity`` and ``query``. They are made when they are first read.
        """
        if isinstance(self._evidence, ScoredNode):
            self._evidence = evidence_dicts(self._evidence)
        return self._evidence

    def __reduce__(self) -> tuple[Any, ...]:
        evidence: Any = self.evidence
        return partial(type(self), node=self.node, score=self.score, evidence=evidence), ()

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> NodeWithEvidence:
        self.evidence  # noqa: B018
        return super().__deepcopy__(memo)

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, NodeWithEvidence) and self.evidence == other.evidence
        return same and super().__eq__(other)

    def explain(self) -> str:
        """Return in words why the node was found: a line for the result, one for each match.

        Example:
            >>> from nodekin.nodegraph import NodeGraph
            >>> from nodekin.retrievers import Retriever
            >>> graph = NodeGraph()
            >>> ids = graph.add("Green tea. Black tea.")
            >>> graph.create_node_group("sentence", lambda text: text.split(". "))
            >>> (result,) = Retriever(graph, "sentence", "bm25", target="ROOT")("green")
            >>> print(to_node_with_score(result).explain())
            0.6931  "Green tea. Black tea."
              0.6931  sentence  bm25 for "green": "Green tea"
        """
        score = "no score" if self.score is None else f"{self.score:.4f}"
        lines = [f"{score}  {shorten(self.node.get_content())}"]
        lines += [line for match in self.evidence for line in explain_match(match)]
        return "\n".join(lines)


def find_node(graph: NodeGraph, node: BaseNode | str) -> Node | None:
    """Return a node by its id in the graph or, if it was imported, in LlamaIndex.

    Args:
        graph: The node graph.
        node: The id, or the LlamaIndex node.
    """
    if isinstance(node, BaseNode):
        record = read_record(node)
        node = node.node_id if record is None else str(record["id"])
    by_original_id = Exact(LLAMA_INDEX_ID, normalize=False)
    for group in graph.groups:
        if group in graph.imports:
            index = by_original_id.open(graph, group)
            with graph.reader.reading(group):
                index.sync()
                for match in index.search(node, 1, Filter()).ids:
                    return graph.node(match)
    with suppress(LookupError):
        return graph.node(node)
    return None


def to_scored_node(result: NodeWithScore) -> ScoredNode:
    """Make a nodekin result of a LlamaIndex one; a missing score counts as 0.

    A node that no graph has becomes a node with its text, metadata and id.
    """
    source = from_text_node(result.node)
    node = source if isinstance(source, Node) else node_of(source)
    return ScoredNode(node, 0.0 if result.score is None else float(result.score))


def evidence_of(result: NodeWithScore) -> list[dict[str, Any]]:
    """Return a copy of a result's evidence; nothing if it has none."""
    return deepcopy(result.evidence) if isinstance(result, NodeWithEvidence) else []


def copy_result(result: NodeWithScore) -> NodeWithScore:
    """Return a copy that shares nothing with the result."""
    return NodeWithEvidence(
        node=result.node.model_copy(deep=True), score=result.score, evidence=evidence_of(result)
    )
