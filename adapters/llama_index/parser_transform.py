"""Use LlamaIndex's node parsers to make node groups."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.callbacks import CallbackManager
from llama_index.core.node_parser import HierarchicalNodeParser, NodeParser
from llama_index.core.schema import BaseNode, Document, TransformComponent

from ...nodegraph.hashing import fingerprint
from ...nodegraph.node import Node
from ...nodegraph.search_text import SearchText
from ..frameworks import is_start, own_metadata
from .nodes import embed_properties, hidden_fields


def as_transform(parser: Any) -> ParserTransform:
    """Make a transform of a LlamaIndex node parser, for ``graph.create_node_group``.

    A graph takes a LlamaIndex splitter as it is, too, and calls it with texts; choose this one for
    a parser that adds metadata (windows, headings), for one that reads the documents' metadata,
    and for extractors and other components that turn a list of nodes into another.

    The parser gets one parent at a time, as a LlamaIndex ``Document`` with the parent's metadata.
    The metadata that it adds becomes the nodes' own. Its random ids and its relationships are not
    used. The start of a chunk in the text is searched for again, since a parser's own search
    returns the next occurrence, also inside the previous chunk; only the starts of a component
    that is no ``NodeParser`` are used, if they are true.

    Two parsers of one class with the same settings are the same rule. Give the group a
    ``version`` if they differ in a captured object, such as a tokenizer.

    Args:
        parser: Anything with ``get_nodes_from_documents``, or a ``TransformComponent``.

    Raises:
        TypeError: If it is neither, or a class.
        ValueError: If it makes nodes of several levels at once (``HierarchicalNodeParser``): in a
            graph each level is a group. For other parsers it is raised when the group is built.

    Example:
        >>> from llama_index.core.node_parser import SentenceWindowNodeParser
        >>> from nodekin.nodegraph import NodeGraph
        >>> parser = SentenceWindowNodeParser.from_defaults(
        ...     sentence_splitter=lambda text: text.split("|"), window_size=1
        ... )
        >>> graph = NodeGraph()
        >>> ids = graph.add("One.|Two.|Three.")
        >>> graph.create_node_group("sentence", as_transform(parser))
        >>> [(node.text, node.start, node.metadata["window"]) for node in graph.nodes("sentence")]
        [('One.', 0, 'One. Two.'), ('Two.', 5, 'One. Two. Three.'), ('Three.', 10, 'Two. Three.')]
    """
    return ParserTransform(parser)


class ParserTransform:
    """Hold a LlamaIndex node parser and call it with a node.

    Attributes:
        rule: Hash of the parser's class and settings.
        trans_node: True: it takes nodes, so a change of a document's metadata rebuilds its
            nodes.
    """

    # The mangled name hides the parser from the rule's fingerprint, which reads slots by name: a
    # parser changes with use (it counts its callback events). ``rule`` stands for it.
    __slots__ = ("__parser", "rule")
    trans_node = True

    def __init__(self, parser: Any) -> None:
        if isinstance(parser, type) or not (
            isinstance(parser, TransformComponent) or hasattr(parser, "get_nodes_from_documents")
        ):
            raise TypeError(
                f"as_transform takes a node parser such as SentenceSplitter(), an object with "
                f"get_nodes_from_documents() or a TransformComponent, not {parser!r:.80}"
            )
        if isinstance(parser, HierarchicalNodeParser):
            raise _several_levels(parser)
        self.__parser = parser
        self.rule = fingerprint(_settings(parser) if isinstance(parser, BaseModel) else parser)

    def __repr__(self) -> str:
        return f"as_transform({type(self.__parser).__name__})"

    def __call__(self, node: Node) -> list[Node]:
        """Return the chunks of a node.

        Raises:
            ValueError: If the parser made nodes of several levels.
        """
        hidden = hidden_fields(node.metadata)
        document = Document(
            id_=node.id,
            text=node.text,
            metadata=deepcopy(node.metadata),
            excluded_embed_metadata_keys=hidden,
            excluded_llm_metadata_keys=hidden,
        )
        if (searched := _of_llama_index(node)) is not None:
            properties = embed_properties(searched, node.metadata)
            document.excluded_embed_metadata_keys = [*searched.excluded]
            document.excluded_llm_metadata_keys = [*searched.excluded_llm]
            document.metadata_template = properties["metadata_template"]
            document.metadata_separator = properties["metadata_separator"]
            document.text_template = properties["text_template"]
        parse = getattr(self.__parser, "get_nodes_from_documents", self.__parser)
        chunks: Sequence[BaseNode] = parse([document])
        ids = {chunk.node_id for chunk in chunks}
        if any(chunk.parent_node and chunk.parent_node.node_id in ids for chunk in chunks):
            raise _several_levels(self.__parser)
        use_start = not isinstance(self.__parser, NodeParser)
        return [_node(chunk, node, use_start) for chunk in chunks]


def _node(chunk: BaseNode, parent: Node, use_start: bool) -> Node:
    """Return the node of a chunk.

    Args:
        chunk: The chunk, which may have more fields that are not searched or not shown.
        parent: What was parsed.
        use_start: Whether the chunk's start may be true.
    """
    text = chunk.get_content()
    start = getattr(chunk, "start_char_idx", None)
    if not use_start or not is_start(start, text, parent.text):
        start = None
    declared = _of_llama_index(parent)
    own = declared and replace(
        declared,
        excluded=tuple(chunk.excluded_embed_metadata_keys),
        excluded_llm=tuple(chunk.excluded_llm_metadata_keys),
    )
    metadata = own_metadata(chunk.metadata, parent.metadata)
    return Node(text, metadata, start=start, search_text=None if own == declared else own)


def _of_llama_index(node: Node) -> SearchText | None:
    """Return the search text of a node that came from LlamaIndex: all metadata but some fields."""
    searched = node.search_text or node.inherited_search_text
    return searched if searched is not None and searched.fields is None else None


def _settings(value: Any) -> Any:
    """Describe a parser by its fields and its functions, and objects by their class and name."""
    if isinstance(value, CallbackManager):
        return None
    if isinstance(value, BaseModel):
        private = (value.__pydantic_private__ or {}).items()
        functions = {name: _settings(value) for name, value in private if callable(value)}
        fields = {name: _settings(getattr(value, name)) for name in type(value).model_fields}
        return type(value), fields, functions
    if isinstance(value, Mapping):
        return {str(key): _settings(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_settings(item) for item in value]
    if isinstance(value, set | frozenset):
        return {fingerprint(_settings(item)) for item in value}
    if isinstance(value, functools.partial):
        return [_settings(part) for part in (value.func, value.args, value.keywords)]
    if isinstance(value, types.MethodType):
        return value.__func__.__qualname__, _settings(value.__self__)
    plain = (str, bytes, int, float, types.FunctionType, types.BuiltinFunctionType, type)
    if value is None or isinstance(value, plain):
        return value
    return type(value), getattr(value, "name", None)


def _several_levels(parser: object) -> ValueError:
    return ValueError(
        f"{type(parser).__name__} makes nodes of several levels at once; in a graph each level is "
        "a group: graph.create_node_group('small', as_transform(SentenceSplitter(chunk_size=128)), "
        "parent='large'), and so on for each size; or import_nodes(graph, nodes) with what it made"
    )
