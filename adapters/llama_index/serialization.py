"""Write LlamaIndex nodes and results as JSON, and read them back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    NodeWithScore,
    TextNode,
)

from .graph_text_node import GraphTextNode
from .nodes import NodeWithEvidence

_FORMAT = "nodekin llama_index nodes"

_VERSION = 1

_NODES = (TextNode, IndexNode, ImageNode, Document, ImageDocument)

_CLASSES: dict[str, type[BaseNode] | type[NodeWithScore]] = {
    cls.class_name(): cls for cls in (*_NODES, NodeWithScore, NodeWithEvidence)
}


def dump_nodes(nodes: Iterable[BaseNode | NodeWithScore]) -> str:
    """Write nodes, or results with their scores and evidence, as a JSON text.

    LlamaIndex can write a ``NodeWithScore`` but not read it; use this to store results in a file,
    a cache or a queue. ``load_nodes`` returns equal objects of the same classes; it creates
    nothing but nodes, whatever the text contains (no pickle).

    Raises:
        TypeError: If one is neither, or of a class of your own; or if a value can't be written
            in JSON, or would be read as another one (a tuple, a date).

    Example:
        >>> text = dump_nodes([NodeWithScore(node=TextNode(text="茶", id_="n1"), score=0.0)])
        >>> [(result.node.text, result.score) for result in load_nodes(text)]
        [('茶', 0.0)]
    """
    if isinstance(nodes, BaseNode | NodeWithScore | str):
        raise TypeError(f"dump_nodes takes a list of nodes or results, not one: {nodes!r:.80}")
    items = [_to_json(item) for item in nodes]
    return json.dumps({"format": _FORMAT, "version": _VERSION, "nodes": items}, ensure_ascii=False)


def load_nodes(text: str) -> list[Any]:
    """Read the nodes and results that ``dump_nodes`` wrote, with their classes.

    Raises:
        ValueError: If the text is something else, or of a newer version.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ValueError(f"load_nodes reads what dump_nodes wrote, not {text!r:.80}") from error
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise ValueError(f"load_nodes reads what dump_nodes wrote, not {text!r:.80}")
    if data.get("version") != _VERSION:
        raise ValueError(
            f"the nodes were written in version {data.get('version')!r}; this one reads "
            f"{_VERSION}: update nodekin"
        )
    return [_from_json(item) for item in data["nodes"]]


def _to_json(item: BaseNode | NodeWithScore) -> dict[str, Any]:
    if isinstance(item, GraphTextNode):
        item = item.plain()
    name = type(item).__name__
    if _CLASSES.get(name) is not type(item):
        raise TypeError(
            f"dump_nodes takes nodes and results of LlamaIndex ({', '.join(_CLASSES)}), not a "
            f"{name}: {item!r:.80}"
        )
    if isinstance(item, BaseNode):
        _check_json(item.metadata, item.node_id)
        return {"class": name, "data": json.loads(item.to_json())}
    data: dict[str, Any] = {"node": _to_json(item.node), "score": item.score}
    if isinstance(item, NodeWithEvidence):
        _check_json(item.evidence, name)
        data["evidence"] = item.evidence
    return {"class": name, "data": data}


def _check_json(value: Any, owner: str) -> None:
    """Check that JSON restores a value as it is."""
    if type(value) is list:
        for item in value:
            _check_json(item, owner)
    elif type(value) is dict and all(isinstance(key, str) for key in value):
        _check_json(list(value.values()), owner)
    elif value is not None and type(value) not in (str, int, float, bool):
        raise TypeError(
            f"{owner!r} holds {value!r:.60}, a {type(value).__name__}, which JSON would not give "
            "back; make it a str, a number, a list or a dict with names"
        )


def _from_json(item: Any) -> BaseNode | NodeWithScore:
    name = item.get("class") if isinstance(item, dict) else None
    if name not in _CLASSES:
        raise ValueError(f"load_nodes knows no class {name!r}; it knows {[*_CLASSES]}")
    data = dict(item["data"])
    if "node" in data:
        data["node"] = _from_json(data["node"])
    return _CLASSES[name].from_dict(data)
