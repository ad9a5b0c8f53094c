"""Use nodekin's transforms and readers in LlamaIndex, and LlamaIndex's parsers in graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import BaseNode, NodeRelationship, TextNode, TransformComponent
from llama_index.core.schema import Document as LlamaIndexDocument

from ...nodegraph.errors import OnError, explain_names
from ...nodegraph.foreign_documents import as_document
from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import fingerprint
from ...nodegraph.node import ROOT, Node
from ...nodegraph.readers.source_files import ReadOptions
from ..argument_types import Splitter
from ..frameworks import in_thread, own_metadata
from .nodes import NamedByClass, related, shown_metadata, to_document, to_text_node

_GROUP = "chunk"


class NodeGraphTransform(NamedByClass, TransformComponent):
    """A LlamaIndex transformation for ``IngestionPipeline`` that applies a nodekin transform.

    The resulting chunks are ``TextNode`` objects that inherit the metadata, templates and excluded
    fields of their input node. The SOURCE relationship of a chunk refers to the document, and the
    PARENT relationship to the input node if it is not the document itself. ``start_char_idx`` is
    the position in the document. Equal inputs result in equal ids.

    The cache key of the pipeline depends on the code and the settings of the transform. To use
    ``num_workers``, the transform must be picklable.

    Args:
        transform: A transform that ``graph.create_node_group`` accepts: a callable, a class or a
            splitter. It is not included in ``to_dict()``. After loading, set it with ``rebind``.
        trans_node: Whether the transform is called with a nodekin ``Node`` (True) or with its text
            (False). If None, this is determined from the transform.
        version: The version of the transform. Change it if code that the transform calls has
            changed.
        rule: Only present because it is a field of ``to_dict()``. It is computed from the
            transform.
        **settings: Settings of the transform, or constructor arguments if it is a class.

    Raises:
        TypeError: If the transform is invalid.

    Example:
        >>> from llama_index.core.ingestion import IngestionPipeline
        >>> from llama_index.core.schema import Document as LlamaIndexDocument
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
        transform: Splitter | None = None,
        *,
        trans_node: bool | None = None,
        version: str | None = None,
        rule: str = "",
        **settings: Any,
    ) -> None:
        settings.pop("class_name", None)  # added by to_dict()
        super().__init__(rule=rule)  # type: ignore[call-arg]
        if transform is not None:
            self._settings = settings
            self.rebind(transform, trans_node=trans_node, version=version)

    def rebind(
        self,
        transform: Splitter,
        *,
        trans_node: bool | None = None,
        version: str | None = None,
    ) -> NodeGraphTransform:
        """Set the transform, and return this object.

        Args:
            transform: The transform, including its settings, such as
                ``SentenceSplitter(chunk_size=9)``.
            trans_node: Whether the transform is called with a ``Node``, as in the constructor.
            version: The version of the transform, as in the constructor.

        Raises:
            TypeError: If the transform is invalid.
        """
        self._settings = {**self._settings, "trans_node": trans_node}
        rule = fingerprint((transform, self._settings))
        self.rule = rule if version is None else version
        self._transform = transform
        self._graph()  # checks the transform
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # LlamaIndex's own method silently omits objects that cannot be pickled.
        settings = {**self._settings, "version": self.rule}
        return partial(type(self), **settings), (self._transform,)

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """Split nodes into chunks, and return the chunks in the order of the nodes.

        Raises:
            TransformError: If the transform fails.
        """
        chunks: list[BaseNode] = []
        for node in nodes:
            graph = self._graph()
            graph.add(as_document(node))
            chunks += [_chunk(to_text_node(chunk), node) for chunk in graph.nodes(_GROUP)]
        return chunks

    acall = in_thread(__call__)

    def _graph(self) -> NodeGraph:
        if self._transform is None:
            raise ValueError(
                "the transform is missing: to_dict() omits it; set it with rebind(split_sentences)"
            )
        graph = NodeGraph(progress=False)
        graph.create_node_group(_GROUP, self._transform, **self._settings)
        return graph


def _chunk(chunk: TextNode, node: BaseNode) -> TextNode:
    """Convert a chunk to a text node that refers to the document of its input node."""
    if isinstance(node, LlamaIndexDocument):
        return chunk
    if node.ref_doc_id is not None:
        chunk.relationships[NodeRelationship.SOURCE] = related(node.ref_doc_id, ROOT)
        chunk.relationships[NodeRelationship.PARENT] = related(node.node_id)
    offset = getattr(node, "start_char_idx", None)
    if offset is None or chunk.start_char_idx is None:
        chunk.start_char_idx = chunk.end_char_idx = None
    else:
        chunk.start_char_idx += offset
        chunk.end_char_idx = chunk.start_char_idx + len(chunk.text)
    return chunk


def as_transform(parser: TransformComponent) -> ParserTransform:
    """Convert a LlamaIndex node parser to a transform for ``graph.create_node_group``.

    A graph also accepts LlamaIndex splitters directly and calls them with texts. Use this function
    for parsers that add or read metadata, and for extractors.

    The parser is called with one parent node at a time, in the form of a LlamaIndex ``Document``.
    Metadata that the parser adds is stored in the new nodes. The random ids and the relationships
    that it creates are discarded. Parsers of the same class with equal settings are considered
    equal. If two of them differ only in an object such as a tokenizer, give the node group a
    ``version``.

    Args:
        parser: A node parser or another ``TransformComponent``. If it creates several levels of
            nodes, building the group raises an error.

    Raises:
        TypeError: If the parser is not a ``TransformComponent``.

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
    """A transform that calls a LlamaIndex node parser.

    Attributes:
        parser: The node parser.
        rule: A hash of the class and the settings of the parser.
        trans_node: Always True, because the transform is called with nodes. If the metadata of a
            node changes, its chunks are therefore rebuilt.
    """

    trans_node = True

    def __init__(self, parser: TransformComponent) -> None:
        if not isinstance(parser, TransformComponent):
            raise TypeError(
                "as_transform takes a node parser such as SentenceSplitter(), or another "
                f"TransformComponent, got {parser!r:.80}"
            )
        values = {**parser.__dict__, **(parser.__pydantic_private__ or {})}
        functions = {name: v for name, v in values.items() if hasattr(v, "__qualname__")}
        self.parser = parser
        self.rule = fingerprint((type(parser), parser.to_dict(), functions))

    def rule_state(self) -> dict[str, str]:
        """Return the values that identify the parser and its settings.

        The parser object itself cannot be used for this, because it changes when it counts events.
        """
        return {"rule": self.rule}

    def __call__(self, node: Node) -> list[Node]:
        """Split a node into chunks.

        Raises:
            ValueError: If the parser creates several levels of nodes.
        """
        metadata = deepcopy(node.metadata)
        document = LlamaIndexDocument(
            id_=node.id, text=node.text, metadata=metadata, **shown_metadata(node, metadata)
        )
        chunks = self.parser([document])
        ids = {chunk.node_id for chunk in chunks}
        if any(chunk.parent_node and chunk.parent_node.node_id in ids for chunk in chunks):
            raise ValueError(
                f"{type(self.parser).__name__} makes nodes of several levels; use one group per "
                "level: graph.create_node_group('small', as_transform(SentenceSplitter("
                "chunk_size=128)), parent='large'); or pass the nodes to NodeGraphIndex(nodes)"
            )
        return [_node(chunk, node) for chunk in chunks]


def _node(chunk: BaseNode, parent: Node) -> Node:
    """Create a node from a chunk, including its excluded metadata fields.

    The start offset is determined by the graph, because a parser may return the offset of an
    earlier occurrence of the same text.
    """
    declared = parent.search_text or parent.inherited_search_text
    own = None
    if declared is not None and declared.fields is None:  # the parent is a LlamaIndex document
        own = replace(
            declared,
            excluded=tuple(chunk.excluded_embed_metadata_keys),
            excluded_llm=tuple(chunk.excluded_llm_metadata_keys),
        )
    metadata = own_metadata(chunk.metadata, parent.metadata)
    return Node(chunk.get_content(), metadata, search_text=None if own == declared else own)


class FileReader(BaseReader):
    """A LlamaIndex reader that loads files and folders in the same way as a ``NodeGraph``.

    File types are detected from the contents of the files, and tables are converted to Markdown.
    Use it in LlamaIndex pipelines, or as a ``file_extractor`` of ``SimpleDirectoryReader``.

    Args:
        group: ``"ROOT"`` to load whole files, or ``"page"``, ``"section"``, ``"table"`` or
            ``"symbol"`` to load parts of files as documents. The metadata of each part contains its
            ``place`` and, if the file has pages, its ``page_label``.
        reading: Options for the readers, as described in ``NodeGraph``.
        on_error: What to do with files that cannot be read, as described in ``NodeGraph``. By
            default, unreadable files in a folder are skipped with a warning.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "tea.md").write_text("# Green tea\\n\\nIt is steamed.")
        ...     (document,) = FileReader("section").load_data(folder)
        >>> document.text, document.metadata["place"]
        ('# Green tea\\n\\nIt is steamed.', 'tea.md, line 1, Green tea')
    """

    @explain_names
    def __init__(
        self,
        group: str = ROOT,
        *,
        reading: ReadOptions | None = None,
        on_error: OnError | None = None,
    ) -> None:
        self.group = group
        self.reading = reading
        self.on_error: OnError | None = on_error

    def load_data(
        self, file: str | Path, extra_info: dict[str, Any] | None = None
    ) -> list[LlamaIndexDocument]:
        """Load the documents of a file or folder.

        Args:
            file: The path of the file or folder.
            extra_info: Additional metadata, which overrides existing fields of the same name.

        Raises:
            ReadError: If the path does not exist, or if a file cannot be read.
            LookupError: If the group is unknown.
        """
        graph = NodeGraph(Path(file), progress=False, reading=self.reading, on_error=self.on_error)
        documents = []
        for node in graph.nodes(self.group):
            document = to_document(node)
            position = {} if self.group == ROOT else {"place": node.place}
            document.metadata = {**position, **document.metadata, **(extra_info or {})}
            documents.append(document)
        return documents
