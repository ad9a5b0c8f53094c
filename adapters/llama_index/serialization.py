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

from .nodes import NodeWithEvidence

_FORMAT = "nodekin llama_index nodes"

_VERSION = 1

_NODES: dict[str, type[BaseNode]] = {
    made.class_name(): made for made in (TextNode, IndexNode, ImageNode, Document, ImageDocument)
}

_RESULTS: dict[str, type[NodeWithScore]] = {
    made.class_name(): made for made in (NodeWithScore, NodeWithEvidence)
}


def dump_nodes(nodes: Iterable[BaseNode | NodeWithScore]) -> str:
    """Write nodes, or results with their scores and evidence, as a JSON text.

    LlamaIndex can write a ``NodeWithScore`` and not read it; this is for results that are kept in
    a file, a cache or a queue. ``load_nodes`` gives equal objects of the same classes; it makes
    nothing but nodes, whatever the text says (no pickle).

    Raises:
        TypeError: If one is neither, or of a class of your own; if a value has no form in JSON,
            or would come back as another one (a tuple, a date).

    Example:
        >>> text = dump_nodes([NodeWithScore(node=TextNode(text="茶", id_="n1"), score=0.0)])
        >>> [(each.node.text, each.score) for each in load_nodes(text)]
        [('茶', 0.0)]
    """
    if isinstance(nodes, BaseNode | NodeWithScore | str):
        raise TypeError(f"dump_nodes takes a list of nodes or results, not one: {nodes!r:.80}")
    made = {"format": _FORMAT, "version": _VERSION, "nodes": [_written(each) for each in nodes]}
    return json.dumps(made, ensure_ascii=False)


def load_nodes(text: str) -> list[Any]:
    """Read what ``dump_nodes`` wrote: nodes and results, of the classes they had.

    Raises:
        ValueError: If the text is something else, or of a newer version.
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"load_nodes reads what dump_nodes wrote, not {text!r:.80}") from error
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise ValueError(f"load_nodes reads what dump_nodes wrote, not {text!r:.80}")
    if found.get("version") != _VERSION:
        raise ValueError(
            f"the nodes were written in version {found.get('version')!r}; this one reads "
            f"{_VERSION}: update nodekin"
        )
    return [_read(each) for each in found["nodes"]]


def _written(item: BaseNode | NodeWithScore) -> dict[str, Any]:
    kind = type(item).__name__
    if isinstance(item, NodeWithScore) and _RESULTS.get(kind) is type(item):
        made: dict[str, Any] = {"class": kind, "node": _written(item.node), "score": item.score}
        if isinstance(item, NodeWithEvidence):
            made["evidence"] = _plain(item.evidence, kind)
        return made
    if isinstance(item, BaseNode) and _NODES.get(item.class_name()) is type(item):
        _plain(item.metadata, item.node_id)
        return {"class": item.class_name(), "data": json.loads(item.to_json())}
    raise TypeError(
        f"dump_nodes takes nodes and results of LlamaIndex ({', '.join(_NODES)}; "
        f"{', '.join(_RESULTS)}), not a {kind}: {item!r:.80}"
    )


def _plain(value: Any, where: str) -> Any:
    """Return a value that JSON gives back as it is."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if type(value) is list:
        return [_plain(each, where) for each in value]
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return {key: _plain(each, where) for key, each in value.items()}
    raise TypeError(
        f"{where!r} holds {value!r:.60}, a {type(value).__name__}, which JSON would not give back; "
        "make it a str, a number, a list or a dict with names"
    )


def _read(found: Any) -> BaseNode | NodeWithScore:
    kind = found.get("class") if isinstance(found, dict) else None
    if kind in _RESULTS:
        fields: dict[str, Any] = {"node": _read(found["node"]), "score": found["score"]}
        if "evidence" in found:
            fields["evidence"] = found["evidence"]
        return _RESULTS[kind](**fields)
    if kind in _NODES:
        return _NODES[kind].from_dict(found["data"])
    raise ValueError(f"load_nodes knows no class {kind!r}; it knows {[*_NODES, *_RESULTS]}")
