"""Define search texts, which combine the text and the metadata of a node for indexing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, astuple, dataclass, fields
from functools import lru_cache
from typing import Any, Literal

from .hashing import digest, fingerprint
from .source_names import headings_of

DEFAULT_FIELDS = ("title", "headings", "table_head")
"""The metadata fields that are searched with the text by default."""

MAX_HEADING = 200
"""The maximum length of a heading or title in metadata and search texts, in characters.

The limit keeps long headings from being repeated in each node of a section.
"""

_HEADINGS = ("title", "heading", "headings")

_EMPTY: tuple[Any, ...] = (None, "", [])


@dataclass(frozen=True, slots=True)
class SearchText:
    """Defines which metadata is searched and embedded together with the text of a node.

    A search text is a callable that takes a node and returns the text to index for it. The graph
    and its groups also accept plain functions. Unlike a function, a ``SearchText`` can be stored
    with a document, and search results list its fields. Search texts with equal settings are equal.

    Search results contain the text of the node without the added metadata, and offsets refer to
    this text.

    Args:
        fields: The names of the metadata fields to add, in this order. Missing and empty fields are
            left out. Titles and headings are truncated to 200 characters. If None, all metadata is
            added. Empty fields are then left out for derived nodes only. If ``()``, no metadata is
            added.
        excluded: The fields to leave out if ``fields`` is None.
        excluded_llm: The fields that are searched but hidden from the LLM in LlamaIndex nodes
            (``excluded_llm_metadata_keys``).
        groups: The names of groups from which related nodes are added before the fields, for
            example a summary of the document. These groups are built before a search.
        field_template: The format string for a field, with the placeholders ``{key}`` and
            ``{value}``.
        separator: The separator between fields.
        list_separator: The separator between the items of a list. If None, the list is converted
            with ``str``.
        template: The format string for the whole text, with the placeholders ``{metadata}`` and
            ``{text}``. It is not applied if no metadata is added.

    Raises:
        TypeError: If a name is empty or not a string.
        ValueError: If a template is invalid or contains unknown placeholders.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> node = Node("It grew by 57%.", {"company": "Lyft", "year": 2021})
        >>> SearchText("company")(node)
        'Lyft\\nIt grew by 57%.'
        >>> SearchText(None, field_template="{key}: {value}", separator="; ")(node)
        'company: Lyft; year: 2021\\nIt grew by 57%.'
    """

    fields: Sequence[str] | None = DEFAULT_FIELDS
    _: KW_ONLY
    excluded: Sequence[str] = ()
    groups: Sequence[str] = ()
    field_template: str = "{value}"
    separator: str = "\n"
    list_separator: str | None = " > "
    template: str = "{metadata}\n{text}"
    excluded_llm: Sequence[str] = ()

    def __post_init__(self) -> None:
        _check_template("field_template", self.field_template, ("key", "value"))
        _check_template("template", self.template, ("metadata", "text"))
        for option in ("fields", "excluded", "groups", "excluded_llm"):
            given = getattr(self, option)
            if given is not None:
                names = _names(option, given)
                if option in ("excluded", "excluded_llm"):
                    names = tuple(sorted(names))
                object.__setattr__(self, option, names)

    def __call__(self, node: Any) -> str:
        """Return the text of a node that is indexed and embedded, including the selected metadata.

        Raises:
            UnknownGroupError: If a group is unknown.
            ValueError: If ``groups`` is not empty and the node does not belong to a graph.
        """
        return self.compose(self.added_text(node), node.text)

    def added_text(self, node: Any) -> str:
        """Return the text to add to a node's text, or an empty string if all fields are empty."""
        names = self._field_names(node)
        if not names and not self.groups:
            return ""
        if self.groups and node.graph is None:
            raise ValueError(
                f"the search text of {node!r} contains group {self.groups[0]!r}, which requires a "
                "graph; get the node from its graph: graph.node(id)"
            )
        lines: list[str] = []
        for group in self.groups:
            lines += [kin.text for kin in node.graph.find(group)(node)]
        lines += [self._line(name, node) for name in names]
        return self.separator.join(lines).strip()

    def compose(self, added: str, text: str) -> str:
        """Combine an added text and a node's text with the template."""
        if not added:
            return text
        return self.template.format(metadata=added, text=text).strip()

    def sources(self, node: Any) -> tuple[str, ...]:
        """Return the names of the groups and metadata fields that are added to a node's text."""
        return (*self.groups, *self._field_names(node))

    @property
    def version(self) -> str:
        """A hash of the settings of this search text."""
        return digest("search text", repr(self.to_row()))

    def _field_names(self, node: Any) -> list[str]:
        if not node.own_metadata and not node.inherited:
            return []
        if self.fields is not None:
            return [name for name in self.fields if _value(node, name) not in _EMPTY]
        metadata = {**node.inherited, **node.own_metadata}
        names = [name for name in metadata if name not in self.excluded]
        if node.parent_id is None:
            return names
        return [name for name in names if metadata[name] not in _EMPTY]

    def _line(self, name: str, node: Any) -> str:
        value = _value(node, name)
        if self.fields is not None and name in _HEADINGS:
            value = _truncated(value)
        if self.list_separator is not None and isinstance(value, list | tuple):
            value = self.list_separator.join([str(item) for item in value])
        return self.field_template.format(key=name, value=str(value))

    def to_row(self) -> list[Any]:
        """Convert the settings to JSON values that ``from_row`` can read."""
        return [list(value) if isinstance(value, tuple) else value for value in astuple(self)]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> SearchText:
        """Restore a search text from the values that ``to_row`` returned."""
        return cls(**dict(zip((field.name for field in fields(cls)), row, strict=True)))


SearchTextRule = Callable[[Any], str]
"""A ``SearchText`` or any other function that takes a node and returns the text to index."""


SearchTextOption = SearchText | str | Sequence[str] | SearchTextRule | Literal[False] | None
"""The types of values that ``as_search_text`` accepts."""


def _value(node: Any, name: str) -> Any:
    """Return the value of a metadata field, or None if it is missing.

    If ``headings`` is missing, the headings are read from the fields that LangChain's splitters
    set.
    """
    if name in node.own_metadata:
        return node.own_metadata[name]
    if name in node.inherited or name != "headings":
        return node.inherited.get(name)
    return headings_of({**node.inherited, **node.own_metadata})


def _truncated(value: Any) -> Any:
    """Truncate a heading, or each heading in a list, to the maximum length."""
    if isinstance(value, list | tuple):
        return [_truncated(item) for item in value]
    return value[:MAX_HEADING] if isinstance(value, str) else value


def as_search_text(value: object) -> SearchTextRule | None:
    """Convert a user's option to a search text.

    Args:
        value: One or several metadata fields, a ``SearchText``, a function that returns the text
            for a node, or False for no metadata. If None, the setting of each document is used.

    Raises:
        TypeError: If the type of the value is not supported.
    """
    if value is None or isinstance(value, SearchText):
        return value
    if value is False:
        return TEXT_ONLY
    if isinstance(value, str):
        return SearchText(value)
    if callable(value):
        return value
    if isinstance(value, Sequence) and all(isinstance(name, str) for name in value):
        return SearchText(value)
    raise TypeError(
        "search_text must be a metadata field, a list of fields, a SearchText, a function from a "
        f"node to a text, or False for the text alone, got {value!r:.80}"
    )


def as_stored_search_text(value: object) -> SearchText | None:
    """Convert a user's option to a search text that can be stored with a document or node.

    Raises:
        TypeError: If the value is a function or its type is not supported.
    """
    rule = as_search_text(value)
    if rule is None or isinstance(rule, SearchText):
        return rule
    raise TypeError(
        f"search_text of a document must be fields or a SearchText, got {value!r:.80}; pass a "
        "function to the graph or the group: NodeGraph(search_text=...)"
    )


def rule_version(rule: SearchTextRule) -> str:
    """Return a hash of the settings of a search text, or of the code of a function."""
    return rule.version if isinstance(rule, SearchText) else fingerprint(rule)


def _names(what: str, names: str | Iterable[str]) -> tuple[str, ...]:
    listed = (names,) if isinstance(names, str) else tuple(names)
    for name in listed:
        if not isinstance(name, str) or not name:
            raise TypeError(f"{what} of a SearchText must be names, got {name!r:.80}")
    return tuple(dict.fromkeys(listed))


@lru_cache(256)
def _check_template(what: str, template: str, names: tuple[str, ...]) -> None:
    try:
        template.format(**dict.fromkeys(names, ""))
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{what} {template!r:.80} is invalid ({type(error).__name__}: {error}); use "
            f"{' and '.join(f'{{{name}}}' for name in names)}, and {{{{ for a brace"
        ) from None


DEFAULT = SearchText()
"""The default search text, which adds the title, the headings and the table header."""

TEXT_ONLY = SearchText(())
"""A search text that adds no metadata."""


def stored_search_text(node: Any) -> SearchText:
    """Return the search text of a node if neither its group nor the graph defines one."""
    return node.search_text or node.inherited_search_text or DEFAULT


def searched_texts(
    nodes: Sequence[Any], rule_of: Callable[[str], SearchTextRule | None]
) -> list[str]:
    """Return the text that is indexed and embedded for each node.

    Args:
        nodes: The nodes.
        rule_of: A function that returns the search text of a group. If it returns None, the setting
            of the node is used.

    Raises:
        ValueError: If a user-defined function raises an error.
        TypeError: If the function does not return a string.
    """
    groups = {node.group for node in nodes}
    rules = {group: rule_of(group) for group in groups}
    texts = []
    added = ""
    shared = (0, 0)  # Adjacent nodes usually share their metadata.
    for node in nodes:
        rule = rules[node.group] or stored_search_text(node)
        if not isinstance(rule, SearchText):
            texts.append(_call(rule, node))
        elif node.own_metadata or rule.groups:
            texts.append(rule(node))
        else:
            source = (id(node.inherited), id(rule))
            if source != shared:
                added = rule.added_text(node)
                shared = source
            texts.append(rule.compose(added, node.text))
    return texts


def _call(rule: SearchTextRule, node: Any) -> str:
    try:
        text = rule(node)
    except Exception as error:
        raise ValueError(
            f"the search_text of group {node.group!r} failed on {node!r}: "
            f"{type(error).__name__}: {error}; return node.text if there is nothing to add"
        ) from error
    if not isinstance(text, str):
        raise TypeError(
            f"the search_text of group {node.group!r} returned {text!r:.80} for {node!r}; it "
            "must return a str"
        )
    return text
