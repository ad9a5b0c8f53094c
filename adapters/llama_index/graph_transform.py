"""Use nodekin's transforms in LlamaIndex's ingestion pipelines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from itertools import pairwise
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
    TransformComponent,
)
from llama_index.core.schema import Document as LlamaIndexDocument

from ...nodegraph.document import Document
from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import fingerprint
from ...nodegraph.node import ROOT, Node
from .nodes import NamedByClass
from .relationships import link_neighbours, related

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
        """Do the same in a thread: a pipeline's event loop goes on."""
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
