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
    """Any nodekin transform as a component of an ``IngestionPipeline``.

    Chunks are ``TextNode`` objects with the metadata, templates and excluded fields of their input
    node. SOURCE is the document. PARENT is the input node, unless this is the document.
    ``start_char_idx`` is the position in the document. Equal inputs produce equal ids.

    The pipeline's cache key contains the transform's code and settings. ``num_workers`` requires a
    transform that can be pickled.

    Args:
        transform: Any transform that ``graph.create_node_group`` accepts: a callable, a class or a
            splitter. It is omitted in ``to_dict()``, so set it with ``rebind``.
        trans_node: Whether the transform is called with a nodekin ``Node`` (True) or with text
            (False). If None, the transform decides.
        version: The version of the rule. Set it if the transform calls code that changes.
        rule: The field of ``to_dict()``. It is computed when the transform is set.
        **settings: Settings of the transform, or constructor arguments of the class.

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
        """Set the transform and return this object.

        Args:
            transform: As in the constructor, with its settings: ``SentenceSplitter(chunk_size=9)``.
            trans_node: As in the constructor.
            version: As in the constructor.

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
        """Return the chunks of the nodes, in the order of the nodes.

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
    """Convert a chunk of a node to a text node that refers to the node's document."""
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
    """Return a LlamaIndex node parser as a transform for ``graph.create_node_group``.

    A graph also accepts a LlamaIndex splitter directly and calls it with texts. Use this function
    for parsers that add or read metadata, and for extractors.

    The parser is called with one parent at a time, as a LlamaIndex ``Document``. Metadata that the
    parser adds become the node's own metadata. Its random ids and relationships are not used.

    Parsers of the same class with equal settings count as one rule. Give the group a ``version`` if
    they differ in a captured object, such as a tokenizer.

    Args:
        parser: A node parser, or another ``TransformComponent``. A parser that creates several
            levels of nodes fails when the group is built.

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
    """A LlamaIndex node parser that is called with a node.

    Attributes:
        parser: The parser.
        rule: Hash of the parser's class and settings.
        trans_node: True, since the transform takes nodes. Therefore, changed metadata rebuild the
            chunks.
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
        """Return what identifies the rule. A parser itself changes when it counts events."""
        return {"rule": self.rule}

    def __call__(self, node: Node) -> list[Node]:
        """Return the chunks of a node.

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
    """Return the node for a chunk, with the chunk's excluded fields.

    The graph finds the start, since a parser may return the start of an earlier, equal text.
    """
    declared = parent.search_text or parent.inherited_search_text
    own = None
    if declared is not None and declared.fields is None:  # a LlamaIndex document
        own = replace(
            declared,
            excluded=tuple(chunk.excluded_embed_metadata_keys),
            excluded_llm=tuple(chunk.excluded_llm_metadata_keys),
        )
    metadata = own_metadata(chunk.metadata, parent.metadata)
    return Node(chunk.get_content(), metadata, search_text=None if own == declared else own)


class FileReader(BaseReader):
    """A reader for files and folders that reads them like ``NodeGraph``.

    File types are detected by content, and tables become Markdown. Use it in LlamaIndex's
    pipelines, or as a ``file_extractor`` of ``SimpleDirectoryReader``.

    Args:
        group: The group that becomes documents: ``"ROOT"`` for whole files, or ``"page"``,
            ``"section"``, ``"table"`` or ``"symbol"`` for parts. The metadata of a part contains
            its ``place`` and, in a file with pages, its ``page_label``.
        reading: The options of readers, as in ``NodeGraph``.
        on_error: As in ``NodeGraph``. By default, unreadable files of a folder are skipped with a
            warning.

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
        """Return the documents of a file or folder.

        Args:
            file: The path.
            extra_info: Additional metadata, which overrides fields of the same name.

        Raises:
            ReadError: If the path is missing, or a file cannot be read.
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
