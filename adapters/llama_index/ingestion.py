"""Use nodekin's transforms and readers in LlamaIndex, and LlamaIndex's parsers in graphs."""

from __future__ import annotations

import asyncio
import functools
import json
import types
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from llama_index.core.bridge.pydantic import BaseModel, Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.node_parser import HierarchicalNodeParser, NodeParser
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import (
    BaseNode,
    ImageNode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
    TransformComponent,
)
from llama_index.core.schema import Document as LlamaIndexDocument

from ...nodegraph.builder import OnError
from ...nodegraph.document import Document
from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import fingerprint
from ...nodegraph.node import ROOT, Node
from ...nodegraph.readers.source_files import ReadOptions
from ...nodegraph.search_text import SearchText
from ..frameworks import is_start, own_metadata
from .nodes import (
    LLAMA_INDEX_PROPERTIES,
    NamedByClass,
    embed_properties,
    hidden_fields,
    link_neighbours,
    original_properties,
    related,
    to_document,
)

_GROUP = "chunk"

_TEMPLATES = ("metadata_template", "metadata_separator", "text_template")


class NodeGraphTransform(NamedByClass, TransformComponent):
    """Split or derive nodes in an ``IngestionPipeline`` by any nodekin transform.

    The chunks are plain ``TextNode`` objects with the metadata, templates and excluded fields of
    their input node, and their own metadata. SOURCE is its source document, PARENT the input node
    itself if it is no document, PREVIOUS and NEXT are their neighbours; ``start_char_idx`` counts
    in the source document. Their ids depend on their content, and are the same in every run.

    Its key in the pipeline's cache is its rule: the transform's code and settings. With
    ``num_workers`` it is sent to other processes; then the transform has to be picklable, so not a
    lambda.

    Args:
        transform: A transform as for ``graph.create_node_group``: a callable, a class of such, a
            splitter. ``rebind`` sets it again in a copy that was made of ``to_dict()``.
        trans_node: Whether the transform gets a nodekin ``Node`` (True) or its text (False); None
            lets the transform decide.
        version: Identifies the rule; set it if the transform calls code that changes.
        **settings: Passed to the transform, to its constructor if it is a class.

    Raises:
        TypeError: If the transform can't be one.

    Example:
        >>> from llama_index.core.ingestion import IngestionPipeline
        >>> from nodekin.nodegraph import split_sentences
        >>> pipeline = IngestionPipeline(transformations=[NodeGraphTransform(split_sentences)])
        >>> nodes = pipeline.run(documents=[LlamaIndexDocument(text="茶是饮品。水也是。", id_="d")])
        >>> [(node.text, node.start_char_idx, node.ref_doc_id) for node in nodes]
        [('茶是饮品。', 0, 'd'), ('水也是。', 5, 'd')]
    """

    rule: str = Field(default="", description="Hash of the transform and its settings.")
    _transform: Any = PrivateAttr(default=None)
    _settings: dict[str, Any] = PrivateAttr(default_factory=dict)

    def __init__(
        self,
        transform: Any = None,
        *,
        trans_node: bool | None = None,
        version: str | None = None,
        rule: str = "",
        **settings: Any,
    ) -> None:
        settings.pop("class_name", None)  # what to_dict() adds
        super().__init__(rule=rule)  # type: ignore[call-arg]
        if transform is not None:
            self.rebind(transform, trans_node=trans_node, version=version, **settings)

    def rebind(
        self,
        transform: Any,
        *,
        trans_node: bool | None = None,
        version: str | None = None,
        **settings: Any,
    ) -> NodeGraphTransform:
        """Set the transform, also after ``to_dict()``, and return this object.

        Raises:
            TypeError: If the transform can't be one.
        """
        options = {"trans_node": trans_node, **settings}
        NodeGraph(progress=False).create_node_group(_GROUP, transform, **options)  # checks
        self._transform, self._settings = transform, options
        self.rule = fingerprint((transform, options)) if version is None else version
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # LlamaIndex's own way leaves out what can't be pickled; here that raises.
        settings = {**self._settings, "rule": self.rule, "version": self.rule}
        return partial(type(self), **settings), (self._transform,)

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """Return the chunks of the nodes, in the order of the nodes.

        Raises:
            TransformError: If the transform raises; it names the node.
            ValueError: If it was made of a dict, which has no transform.
        """
        if self._transform is None:
            raise ValueError(
                "this NodeGraphTransform has no transform, which to_dict() does not carry; give it "
                "one: transform.rebind(split_sentences)"
            )
        return [chunk for node in nodes for chunk in self._chunks(node)]

    async def acall(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """Async version of ``__call__``."""
        return await asyncio.to_thread(self.__call__, nodes, **kwargs)

    def _chunks(self, node: BaseNode) -> list[TextNode]:
        graph = NodeGraph(progress=False)
        graph.create_node_group(_GROUP, self._transform, **self._settings)
        graph.add(Document(node.get_content(), deepcopy(node.metadata), id=node.node_id))
        chunks = [_text_node(chunk, node) for chunk in graph.nodes(_GROUP)]
        for previous, following in pairwise(chunks):
            link_neighbours(previous, following)
        return chunks


def _text_node(chunk: Node, node: BaseNode) -> TextNode:
    is_document = isinstance(node, LlamaIndexDocument)
    offset = 0 if is_document else getattr(node, "start_char_idx", None)
    start = None if chunk.start is None or offset is None else offset + chunk.start
    return TextNode(
        id_=chunk.id,
        text=chunk.content if isinstance(chunk.content, str) else str(chunk.content),
        metadata=deepcopy(chunk.metadata),
        excluded_embed_metadata_keys=list(node.excluded_embed_metadata_keys),
        excluded_llm_metadata_keys=list(node.excluded_llm_metadata_keys),
        start_char_idx=start,
        end_char_idx=None if start is None else start + len(chunk.text),
        relationships=_relationships(node, is_document),
        **{name: getattr(node, name) for name in _TEMPLATES if hasattr(node, name)},
    )


def _relationships(node: BaseNode, is_document: bool) -> dict[NodeRelationship, RelatedNodeInfo]:
    parent = related(node.node_id, ROOT if is_document else None)
    source = node.source_node
    if is_document or source is None:
        return {NodeRelationship.SOURCE: parent}
    document = RelatedNodeInfo(node_id=source.node_id, node_type=source.node_type)
    return {NodeRelationship.SOURCE: document, NodeRelationship.PARENT: parent}


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
        document = LlamaIndexDocument(
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
    if image := original_properties(parent).get("more", {}).get("image_resource"):
        # As LlamaIndex's own parsers do, each chunk has the image of its document.
        fields = {"image": "data", "image_path": "path", "image_url": "url"}
        more = {name: image[key] for name, key in fields.items() if image.get(key) is not None}
        properties = {} if declared is None else embed_properties(declared, chunk.metadata)
        properties |= {"class": ImageNode.class_name(), "more": more}
        metadata[LLAMA_INDEX_PROPERTIES] = json.dumps(properties, ensure_ascii=False)
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


class FileReader(BaseReader):
    """Read a file or a folder as ``NodeGraph`` reads it: known by content, tables as Markdown.

    Choose this for LlamaIndex's own pipelines, by itself or in the ``file_extractor`` of
    ``SimpleDirectoryReader``; a graph reads paths itself.

    Args:
        group: What becomes a document: whole files, or their ``"page"``, ``"section"``,
            ``"table"`` or ``"symbol"``, whose metadata say where it stands (``place``,
            ``page_label``).
        reading: How files are read.
        on_error: As in ``NodeGraph``. None: unreadable files of a folder are skipped with a
            warning.
    """

    def __init__(
        self,
        group: str = ROOT,
        *,
        reading: ReadOptions | None = None,
        on_error: OnError | None = None,
    ) -> None:
        self.group = group
        self.reading = reading
        self.on_error = on_error

    def load_data(
        self, file: str | Path, extra_info: dict[str, Any] | None = None
    ) -> list[LlamaIndexDocument]:
        """Return the documents of a file or folder.

        Args:
            file: The file or the folder.
            extra_info: More metadata. It replaces fields of the same name.

        Raises:
            ReadError: If the file or folder is missing, or a named file can't be read.
            LookupError: If the group is unknown.
        """
        graph = NodeGraph(Path(file), reading=self.reading, on_error=self.on_error, progress=False)
        documents = []
        for node in graph.nodes(self.group):
            document = to_document(node)
            position = {} if self.group == ROOT else {"place": node.place}
            document.metadata = {**position, **document.metadata, **(extra_info or {})}
            documents.append(document)
        return documents
