"""Use nodekin's transforms in LlamaIndex's ingestion pipelines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
    TransformComponent,
)
from llama_index.core.schema import Document as LlamaIndexDocument

from ...nodegraph import Document, Node, NodeGraph
from ...nodegraph.hashing import fingerprint
from .nodes import related

_GROUP = "piece"


class NodeGraphTransform(TransformComponent):
    """Split or derive nodes in an ``IngestionPipeline`` by any nodekin transform.

    The pieces are plain ``TextNode``s: with the metadata, templates and excluded fields of the
    node they come from and their own; with its source document as SOURCE, itself as PARENT where
    it is no document, their neighbours as PREVIOUS and NEXT; their place counted in the source
    document. Their ids depend on what they are made of, and are the same in every run.

    The pipeline's cache knows it by its rule: the transform's code and settings. With
    ``num_workers`` it goes to other processes; the transform has to be one that can be pickled,
    so not a lambda.

    Args:
        transform: Whatever ``graph.create_node_group`` takes: a callable, a class of such, a
            splitter. ``rebind`` gives it to a copy that was made of ``to_dict()``.
        trans_node: Whether the transform gets a nodekin ``Node`` (True) or its text (False); None
            asks the transform.
        version: Names the rule; give it when the transform calls code that changes.
        **settings: Passed to the transform, to its constructor where it is a class.

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

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex serialises it under."""
        return "NodeGraphTransform"

    def rebind(
        self,
        transform: Any,
        *,
        trans_node: bool | None = None,
        version: str | None = None,
        **settings: Any,
    ) -> NodeGraphTransform:
        """Give it a transform, in place of its own or of one that was lost; return it.

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
        return _again, (self._transform, self._settings, self.rule)

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """Return the pieces of each node, in the order of the nodes.

        Raises:
            TransformError: If the transform raises; it names the node.
            ValueError: If it was made of a dict, which has no transform.
        """
        if self._transform is None:
            raise ValueError(
                "this NodeGraphTransform has no transform, which to_dict() does not carry; give it "
                "one: transform.rebind(split_sentences)"
            )
        return [piece for node in nodes for piece in self._pieces(node)]

    async def acall(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """Do the same in a thread: a pipeline's event loop goes on."""
        return await asyncio.to_thread(self.__call__, nodes, **kwargs)

    def _pieces(self, node: BaseNode) -> list[TextNode]:
        graph = NodeGraph(progress=False)
        graph.create_node_group(_GROUP, self._transform, **self._settings)
        graph.add(Document(node.get_content(), deepcopy(node.metadata), id=node.node_id))
        made = [_text_node(piece, node) for piece in graph.nodes(_GROUP)]
        for before, after in pairwise(made):
            before.relationships[NodeRelationship.NEXT] = related(after.node_id)
            after.relationships[NodeRelationship.PREVIOUS] = related(before.node_id)
        return made


def _text_node(piece: Node, node: BaseNode) -> TextNode:
    document = isinstance(node, LlamaIndexDocument)
    begins = 0 if document else getattr(node, "start_char_idx", None)
    start = end = None
    if piece.start is not None and begins is not None:
        start = begins + piece.start
        end = start + len(piece.text)
    templates = ("metadata_template", "metadata_separator", "text_template")
    made = TextNode(
        id_=piece.id,
        text=piece.content if isinstance(piece.content, str) else str(piece.content),
        metadata=deepcopy(piece.metadata),
        excluded_embed_metadata_keys=list(node.excluded_embed_metadata_keys),
        excluded_llm_metadata_keys=list(node.excluded_llm_metadata_keys),
        start_char_idx=start,
        end_char_idx=end,
        relationships=_kin(node, document),
    )
    for name in templates:
        if hasattr(node, name):
            setattr(made, name, getattr(node, name))
    return made


def _kin(node: BaseNode, document: bool) -> dict[NodeRelationship, RelatedNodeInfo]:
    above = RelatedNodeInfo(
        node_id=node.node_id, node_type=ObjectType.DOCUMENT if document else ObjectType.TEXT
    )
    source = node.source_node
    if document or source is None:
        return {NodeRelationship.SOURCE: above}
    first = RelatedNodeInfo(node_id=source.node_id, node_type=source.node_type)
    return {NodeRelationship.SOURCE: first, NodeRelationship.PARENT: above}


def _again(transform: Any, settings: dict[str, Any], rule: str) -> NodeGraphTransform:
    made = NodeGraphTransform(rule=rule)
    made._transform, made._settings = transform, settings
    return made
