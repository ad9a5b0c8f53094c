"""Convert users' transforms to rules, and their outputs to drafts of nodes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from .document import declared_search_text
from .models.model_objects import check_named
from .node import LinkedText, Node
from .search_text import SearchText, file_name_of, source_of
from .splitters.chunking import Span, locate

if TYPE_CHECKING:
    from .models.answer_cache import AnswerCache

Transform = Callable[[Any], Any]
"""A function from a text or a ``Node`` to one or several texts, nodes or other objects."""


class Draft(NamedTuple):
    """An output of a transform, before it becomes a node.

    ``start`` and ``end`` are offsets in the parent's text. ``links`` are pairs of a type and the id
    of a node. ``search_text`` is the node's own setting. None: the setting of its parent.
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
    """A rule from a node to drafts: one transform, or a transform for each file pattern.

    Patterns are shell patterns (``*.md``), case-sensitive. The first matching pattern decides. A
    pattern with a slash is matched against the document id and the ``source`` (a path or a URL, as
    in LangChain). Other patterns are matched against the file name (``file_name``, or the end of
    the ``source``), or against the id of a document without a file name.

    Attributes:
        parts: The patterns, each with its transform and whether the transform receives a ``Node``
            (True) or a text (False). None as a transform leaves documents out of the group.
        by_file: Whether the file name selects the transform. Otherwise, there is one transform.
    """

    parts: Sequence[tuple[str, Transform | None, bool]]
    by_file: bool = False

    @property
    def trans_node(self) -> bool:
        """Whether any of the transforms receives nodes."""
        return any(sees_node for _, _, sees_node in self.parts)

    def __call__(
        self, source: Node | Sequence[Node], answers: AnswerCache | None = None
    ) -> list[Draft]:
        """Call the transform, and return the drafts.

        Args:
            source: A node, or all nodes of a group.
            answers: A cache of the answers of language models.

        Raises:
            LookupError: If no pattern matches, since documents are never left out silently.
        """
        if not isinstance(source, Node):
            ((_, call, sees_node),) = self.parts
            inputs = list(source) if sees_node else [node.text for node in source]
            return read_output(_cached(call, answers)(inputs), None)
        _, call, sees_node = self._part_for(source.root) if self.by_file else self.parts[0]
        if call is None:
            return []
        spans = getattr(call, "spans", None)
        if callable(spans) and not sees_node:  # the pieces have exact spans
            text = source.text
            return [Draft(text[a:b], start=a, end=b) for a, b in spans(text)]
        return read_output(_cached(call, answers)(source if sees_node else source.text), source)

    def _part_for(self, root: Node) -> tuple[str, Transform | None, bool]:
        name = file_name_of(root.own_metadata) or root.id
        paths = [root.id, source_of(root.own_metadata) or root.id]
        for part in self.parts:
            names = paths if "/" in part[0] else [name]
            if any(fnmatchcase(each, part[0]) for each in names):
                return part
        raise LookupError(
            f"no pattern of {', '.join(repr(part[0]) for part in self.parts)} matches {name!r}; "
            'add ("*", transform), or ("*", None) to skip such files'
        )


def _cached(call: Any, answers: AnswerCache | None) -> Transform:
    """Return a transform, with a cache of answers if it asks a language model."""
    with_answers = None if answers is None else getattr(call, "with_answers", None)
    cached: Transform = call if with_answers is None else with_answers(answers)
    return cached


def as_rule(transform: object, trans_node: bool | None, settings: Mapping[str, Any]) -> Rule:
    """Convert a user's transform to a rule from a node to drafts.

    Raises:
        TypeError: If the transform has an unsupported type.
    """
    if isinstance(transform, Mapping) and not {"f", "transform"}.isdisjoint(transform):
        raise TypeError(
            f"transform must not be a dictionary of LazyLLM, got {transform!r:.80}; pass the "
            "function or class and its settings: create_node_group(name, f, **kwargs)"
        )
    patterns = list(transform.items()) if isinstance(transform, Mapping) else transform
    if not isinstance(patterns, Sequence) or isinstance(patterns, str):
        return Rule((("*", *_with_input(transform, trans_node, settings)),))
    parts: list[tuple[str, Transform | None, bool]] = []
    for entry in patterns:
        if not (isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[0], str)):
            raise TypeError(
                "transforms by file must be pairs of a file pattern and a transform, like "
                f'("*.md", MarkdownSplitter()), got {entry!r:.80}'
            )
        pattern, call = entry
        made = (None, False) if call is None else _with_input(call, trans_node, settings)
        parts.append((pattern, *made))
    if not parts:
        raise TypeError("transforms by file must have at least one pair, got an empty list")
    return Rule(tuple(parts), by_file=True)


def _with_input(
    transform: object, trans_node: bool | None, settings: Mapping[str, Any]
) -> tuple[Transform, bool]:
    """Return a transform as a function, and whether it receives nodes."""
    if inspect.isclass(transform):
        transform, settings = transform(**settings), {}
    call = _callable(transform)
    sees_node = _sees_node(transform) if trans_node is None else trans_node
    return functools.partial(call, **settings) if settings else call, sees_node


def check_model_names(rule: Rule) -> None:
    """Check that no transform's language model ``llm`` is a function without a name.

    Raises:
        ValueError: If a function has no name.
    """
    for _, call, _ in rule.parts:
        name = getattr(getattr(call, "llm", None), "name", None)
        if isinstance(name, str):
            kind = type(call).__name__
            check_named(name, f'{kind}(LLM({{function}}, name="my-model"), ...)')


def _callable(transform: object) -> Transform:
    if hasattr(transform, "get_nodes_from_documents") and not hasattr(transform, "split_text"):
        raise TypeError(
            f"{type(transform).__name__} is a LlamaIndex node parser over lists of nodes; wrap "
            "it: nodekin.adapters.llama_index.as_transform(parser)"
        )
    if hasattr(transform, "split_text"):  # LangChain and LlamaIndex text splitters
        return functools.partial(_split_text, transform)
    if callable(transform):
        return transform
    method = getattr(transform, "transform", None)
    if callable(method) and not hasattr(transform, "invoke"):  # LazyLLM
        call: Transform = method
        return call
    raise TypeError(
        "transform must be a callable, a class, a text splitter or a list of (file pattern, "
        f"transform) pairs, got {transform!r:.80}"
    )


def _split_text(splitter: Any, text: str) -> Any:
    """Split a text. Unlike the method of LlamaIndex's splitters, this function can be pickled."""
    return splitter.split_text(text)


def _sees_node(transform: Any) -> bool:
    """Return whether a transform receives nodes.

    The attribute ``trans_node`` has priority over the annotation of the first parameter.
    """
    declared = getattr(transform, "trans_node", None)
    if isinstance(declared, bool):
        return declared
    if not callable(transform):  # LangChain's splitters receive texts, LazyLLM's objects nodes
        return not hasattr(transform, "split_text")
    try:
        parameters = list(inspect.signature(transform).parameters.values())
    except (TypeError, ValueError):  # some built-ins have no signature
        return False
    annotation = parameters[0].annotation if parameters else None
    return annotation is Node or annotation in ("Node", "nodekin.nodegraph.Node")


def read_output(output: object, parent: Node | None) -> list[Draft]:
    """Convert the output of a transform to drafts. Blank pieces are left out.

    Args:
        output: The output.
        parent: The input node. None: the input was a whole group, so the drafts have no spans.

    Raises:
        TypeError: If the output is None, which is probably a missing return, or if it contains
            None, bytes, or links to objects that are not nodes of a graph.
        ValueError: If the span of a returned node does not contain its text.
    """
    if output is None:
        raise TypeError(
            "transform must return texts or nodes, got None; return [] to create no nodes"
        )
    drafts = [_draft(item) for item in _items(output)]
    drafts = [draft for draft in drafts if draft.text and not draft.text.isspace()]
    if parent is None:
        return [draft._replace(start=None, end=None) for draft in drafts]
    spans = iter(locate([d.text for d in drafts if d.start is None], parent.text))
    return [
        _placed(draft, next(spans) if draft.start is None else None, parent) for draft in drafts
    ]


def _items(output: object) -> Iterable[object]:
    """Return the pieces of an output. An object with its own text form is one piece."""
    single = isinstance(output, str | bytes | Mapping | Node | Draft | LinkedText) or any(
        hasattr(output, name) for name in ("page_content", "get_content", "model_dump")
    )  # pydantic models iterate over their fields
    return output if isinstance(output, Iterable) and not single else [output]


def _placed(draft: Draft, found: Span | None, parent: Node) -> Draft:
    """Return a draft with its span: the given span, or the span where its text was found."""
    if draft.start is None:
        if found is None:
            return draft
        text, content, metadata, _, _, links, search_text = draft
        return Draft(text, content, metadata, *found, links, search_text)
    end = draft.start + len(draft.text) if draft.end is None else draft.end
    if draft.start < 0 or parent.text[draft.start : end] != draft.text:
        raise ValueError(
            f"the text of a node must equal its parent's text at {draft.start}:{end}, which is "
            f"{parent.text[draft.start : end]!r:.60}, got {draft.text!r:.60}; omit start and end "
            "to search the text"
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
        # The span of a stored node refers to its document, not to the current parent.
        span = (None, None) if item.id else (item.start, item.end)
        metadata = dict(item.own_metadata)
        return Draft(item.text, content, metadata, *span, search_text=item.search_text)
    metadata = getattr(item, "metadata", {})
    if isinstance(text := getattr(item, "page_content", None), str):  # LangChain
        return Draft(text, None, metadata)
    if callable(content := getattr(item, "get_content", None)):  # LlamaIndex
        declared = declared_search_text(item)
        own = None if declared == _ALL_METADATA else declared
        return Draft(content(), None, metadata, search_text=own)
    if isinstance(item, bytes):
        raise TypeError("transform must return texts or nodes, got bytes; decode them to a str")
    if item is None:
        raise TypeError("transform must return texts or nodes, got a list with None; omit None")
    return Draft(str(item), item if isinstance(item, bool | int | float) else None)


_ALL_METADATA = SearchText(
    None,
    field_template="{key}: {value}",
    list_separator=None,
    template="{metadata_str}\n\n{content}",
)
"""The default search text of LlamaIndex nodes."""
