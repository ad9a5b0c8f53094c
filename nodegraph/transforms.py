"""Call user-defined transforms and convert their results to drafts of nodes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from .foreign_documents import ALL_METADATA, HEADINGS_ONLY, read_foreign
from .models.model_objects import check_named
from .node import LinkedText, Node
from .search_text import SearchText
from .splitters.chunking import locate

if TYPE_CHECKING:
    from .models.answer_cache import AnswerCache

Transform = Callable[[Any], Any]
"""A function that converts a text or a ``Node`` to one or several texts, nodes or other objects."""


class Draft(NamedTuple):
    """A result of a transform that has not been converted to a node yet.

    ``start`` and ``end`` are offsets in the text of the parent. ``links`` contains pairs of a link
    type and the id of a node. ``search_text`` is the setting of this node. If None, the setting of
    the parent is used.
    """

    text: str
    content: Any = None
    metadata: Mapping[str, Any] | None = None
    start: int | None = None
    end: int | None = None
    links: tuple[tuple[str, str], ...] = ()
    search_text: SearchText | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A wrapper around a transform that converts its results to drafts of nodes.

    Attributes:
        call: The transform to call.
        trans_node: Whether the transform receives a ``Node`` (True) or a text (False).
    """

    call: Transform
    trans_node: bool

    def __call__(
        self, source: Node | Sequence[Node], answers: AnswerCache | None = None
    ) -> list[Draft]:
        """Call the transform and return its results as drafts.

        Args:
            source: A single node, or all nodes of a group.
            answers: A cache for the answers of language models.
        """
        call = self.call
        if answers is not None and hasattr(call, "with_answers"):
            call = call.with_answers(answers)
        if isinstance(source, Node):
            if self.trans_node:
                return read_output(call(source), source)
            text = source.text
            spans = getattr(call, "spans", None)
            if callable(spans):  # The transform returns exact offsets.
                return [Draft(text[a:b], start=a, end=b) for a, b in spans(text)]
            return read_output(call(text), source)
        if self.trans_node:
            return read_output(call(list(source)), None)
        return read_output(call([node.text for node in source]), None)


def as_rule(transform: object, trans_node: bool | None, settings: Mapping[str, Any]) -> Rule:
    """Wrap a user-defined transform in a ``Rule``.

    Raises:
        TypeError: If the type of the transform is not supported.
    """
    if inspect.isclass(transform):
        transform = transform(**settings)
        settings = {}
    call = _callable(transform)
    if trans_node is None:
        trans_node = _sees_node(transform)
    if settings:
        call = functools.partial(call, **settings)
    return Rule(call, trans_node)


def check_model_names(rule: Rule) -> None:
    """Check that the language model of a transform, if it is a function, has a name.

    Raises:
        ValueError: If the attribute ``llm`` of the transform is a function without a name.
    """
    name = getattr(getattr(rule.call, "llm", None), "name", None)
    if isinstance(name, str):
        kind = type(rule.call).__name__
        check_named(name, f'{kind}(LLM({{function}}, name="my-model"), ...)')


def _callable(transform: object) -> Transform:
    if hasattr(transform, "get_nodes_from_documents") and not hasattr(transform, "split_text"):
        raise TypeError(
            f"{type(transform).__name__} is a LlamaIndex node parser over lists of nodes; wrap "
            "it: nodekin.adapters.llama_index.as_transform(parser)"
        )
    if hasattr(transform, "split_text"):  # text splitters of LangChain and LlamaIndex
        return functools.partial(_split_text, transform)
    if callable(transform):
        return transform
    method = getattr(transform, "transform", None)
    if callable(method) and not hasattr(transform, "invoke"):  # transforms of LazyLLM
        call: Transform = method
        return call
    raise TypeError(
        f"transform must be a callable, a class or a text splitter, got {transform!r:.80}; pass "
        "its settings as arguments: create_node_group(name, transform, **settings)"
    )


def _split_text(splitter: Any, text: str) -> Any:
    """Split a text. Unlike the methods of LlamaIndex's splitters, this function can be pickled."""
    return splitter.split_text(text)


def _sees_node(transform: Any) -> bool:
    """Return whether a transform receives nodes instead of texts.

    The attribute ``trans_node`` takes precedence over the annotation of the first parameter.
    """
    declared = getattr(transform, "trans_node", None)
    if isinstance(declared, bool):
        return declared
    # LangChain's splitters receive texts, and LazyLLM's transforms receive nodes.
    if not callable(transform):
        return not hasattr(transform, "split_text")
    try:
        parameters = list(inspect.signature(transform).parameters.values())
    except (TypeError, ValueError):  # Some built-in functions have no signature.
        return False
    annotations = [parameter.annotation for parameter in parameters[:1]]
    return annotations in ([Node], ["Node"], ["nodekin.nodegraph.Node"])


def read_output(output: object, parent: Node | None) -> list[Draft]:
    """Convert the output of a transform to drafts of nodes. Blank results are left out.

    Args:
        output: The value that the transform returned.
        parent: The input node. If None, the input was a whole group, and the drafts have no
            offsets.

    Raises:
        TypeError: If the output is None (usually because of a missing ``return``), or if it
            contains None, bytes, or links to objects that are not nodes of a graph.
        ValueError: If the text at the offsets of a returned node differs from the text of the node.
    """
    if output is None:
        raise TypeError(
            "transform must return texts or nodes, got None; return [] to create no nodes"
        )
    drafts = [_draft(item) for item in _items(output)]
    drafts = [draft for draft in drafts if draft.text and not draft.text.isspace()]
    if parent is None:
        return [draft._replace(start=None, end=None) for draft in drafts]
    spans = iter(locate([draft.text for draft in drafts if draft.start is None], parent.text))
    placed: list[Draft] = []
    for draft in drafts:
        if draft.start is None:
            start, end = next(spans) or (None, None)
            placed.append(draft._replace(start=start, end=end))
        else:
            placed.append(_checked(draft, parent))
    return placed


def _items(output: object) -> Iterable[object]:
    """Return the individual results in an output.

    An object that can be converted to a text counts as a single result.
    """
    is_single = isinstance(output, str | bytes | Mapping | Node | Draft | LinkedText)
    if is_single or not isinstance(output, Iterable):
        return [output]
    # Iterating over a Pydantic model would yield its fields.
    of_one = ("page_content", "get_content", "model_dump")
    return [output] if any(hasattr(output, name) for name in of_one) else output


def _checked(draft: Draft, parent: Node) -> Draft:
    """Return a draft with an end offset, and check its offsets.

    Raises:
        ValueError: If the text at the offsets differs from the text of the draft.
    """
    start = draft.start or 0
    end = start + len(draft.text) if draft.end is None else draft.end
    if start < 0 or parent.text[start:end] != draft.text:
        raise ValueError(
            f"the text of a node must equal its parent's text at {start}:{end}, which is "
            f"{parent.text[start:end]!r:.60}, got {draft.text!r:.60}; omit start and end to search "
            "the text"
        )
    return draft._replace(end=end)


def _draft(item: object) -> Draft:
    if isinstance(item, str):
        return Draft(item)
    if isinstance(item, Draft):
        return item
    if isinstance(item, LinkedText):
        for node in item.to:
            if not isinstance(node, Node) or not node.id:
                raise TypeError(
                    f"LinkedText(..., to=[...]) requires nodes of the graph, got {node!r:.80}; "
                    "register the transform with trans_node=True"
                )
        links = tuple((item.type, node.id) for node in item.to)
        return _draft(item.item)._replace(links=links)
    if isinstance(item, Node):
        content = None if item.content == item.text else item.content
        draft = Draft(
            item.text, content, dict(item.own_metadata), item.start, item.end, (), item.search_text
        )
        # The offsets of a stored node refer to its document, not to the current parent.
        return draft._replace(start=None, end=None) if item.id else draft
    foreign = read_foreign(item)
    if foreign is not None:
        draft = Draft(foreign.text, None, foreign.metadata)
        if foreign.search_text in (HEADINGS_ONLY, ALL_METADATA):
            return draft
        return draft._replace(search_text=foreign.search_text)
    if isinstance(item, bytes):
        raise TypeError("transform must return texts or nodes, got bytes; decode them to a str")
    if item is None:
        raise TypeError("transform must return texts or nodes, got a list with None; omit None")
    return Draft(str(item), item if isinstance(item, bool | int | float) else None)
