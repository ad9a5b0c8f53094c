"""A ``TextNode`` that knows its node in the graph."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from llama_index.core.bridge.pydantic import (
    PrivateAttr,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from llama_index.core.schema import TextNode

from ...nodegraph.node import Node
from .relationships import RECORD, all_relationships, node_record

_LAZY = "relationships"


class GraphTextNode(TextNode):
    """Be a ``TextNode`` whose relationships are looked up in its graph when they are first read.

    A result has its children and neighbours, for the components that follow them, and costs
    nothing if nobody reads them. Relationships are those of the graph at that time. When it is
    pickled, written as JSON or compared, it is a plain ``TextNode`` with all of them.
    """

    _graph_node: Node = PrivateAttr()  # of one whose dict has no relationships yet

    def __getattr__(self, name: str) -> Any:
        # Called for what is not in the instance's dict.
        if name != _LAZY:
            return super().__getattr__(name)  # type: ignore[misc]
        relationships = self.__dict__[_LAZY] = all_relationships(self._graph_node)
        return relationships

    @property
    def record(self) -> dict[str, Any]:
        """What a LlamaIndex node has no field for, without looking up the relationships."""
        return node_record(self._graph_node)

    def plain(self) -> TextNode:
        """Return a plain ``TextNode`` with all relationships."""
        return TextNode(**{name: getattr(self, name) for name in TextNode.model_fields})

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> GraphTextNode:
        copied = self.__copy__()
        copied.__dict__.update(deepcopy(self.__dict__, memo))
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _return, (self.plain(),)

    def __eq__(self, other: object) -> bool:
        return self.plain() == (other.plain() if isinstance(other, GraphTextNode) else other)

    def __repr_args__(self) -> Any:
        return self.plain().__repr_args__()

    @model_serializer(mode="wrap")
    def custom_model_dump(
        self, handler: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        """Serialize it with its relationships, as LlamaIndex does."""
        self.relationships  # noqa: B018  # looks them up
        data: dict[str, Any] = handler(self)
        return {**data, "class_name": self.class_name()}


def _return(node: TextNode) -> TextNode:
    """Return a node: what a pickle of a ``GraphTextNode`` calls."""
    return node


def read_record(node: Any) -> dict[str, Any] | None:
    """Return the record of a LlamaIndex node that was made of a graph's node; None of others."""
    if isinstance(node, GraphTextNode):
        return node.record
    source = node.source_node
    record = None if source is None else source.metadata.get(RECORD)
    return record if isinstance(record, dict) and "group" in record else None
