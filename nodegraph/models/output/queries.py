"""Parse the lists in a model's answer: queries, routes, keywords, questions, pairs.

An answer without any of the requested items is an error. The result is empty only for an answer
such as NONE or [].
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ...splitters.chunking import UNSPACED
from .answer_text import normalize, read_text, usable_text
from .failures import failure_in
from .free_text import is_unknown
from .items import Item, read_items
from .json_values import TEXT_KEYS
from .lines import strip_markup
from .tags import check_no_tag

MAX_QUERY_LENGTH = 400
"""The maximum length of a query from a model, in characters. A longer text is not used."""

_QUESTION = re.compile(
    r"(?:who\w*|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|should|would"
    r"|will|has|have|in what|in which)\b"
    r"|.*(?:什么|为何|如何|怎[么样]|哪|谁|几|多[少久长大高远重]|是否|吗|何[时地人])",
    re.I,
)

# The remains of JSON in a text.
_STRUCTURE = re.compile(
    r"[{\[]\s?\Z|[\"'”]\s?[:：=\]}]|[{\[]\s?[\"'“]|[?？][\"”]\s?[,;]|[\]}]\s?[,\]}]"
)

# A question up to its mark. A quoted question in the middle of a sentence is part of it.
_ASKED = re.compile(r"[^?？]*(?:[?？][\"”'’」』][^\s?？][^?？]*)*[?？]+")

_OFFER = re.compile(
    r"(?:would|do|can|could) you|(?:shall|should|can|may) i\b|(?:请问)?[您你]", re.I
)

_NO_QUERY = re.compile(r"no (?:query|change)s?|unchanged|yes|可以|不(?:需要?|用)改写", re.I)

_WORD = re.compile(r"\w")

QUERY_KEYS = (
    *TEXT_KEYS,
    "rewritten_query",
    "search_query",
    "new_question",
    "new_query",
    "rewritten",
    "rewrite",
    "next_question",
    "standalone_question",
    "phrasings",
    "alternatives",
    "variants",
    "output",
    "input",
    "arguments",
    "parameters",
    "action_input",
    "改写",
    "查询",
    "问法",
)
"""The keys of queries in JSON or tags."""


def is_question(text: str) -> bool:
    """Return whether a text is a question, with or without its mark.

    Example:
        >>> [is_question(text) for text in ("how long is it", "它有多长", "It is long.")]
        [True, True, False]
    """
    return text.strip().endswith(("?", "？")) or _QUESTION.match(text.strip()) is not None


def _is_statement(text: str) -> bool:
    ends = text.endswith((".", "。", "!", "！")) and not text.endswith("...")
    return ends and not is_question(text)


def is_query(text: str, query: str = "") -> bool:
    """Return whether a text can be searched for: words, not too many, and no remains of JSON.

    Args:
        text: The text.
        query: The query that it replaces. One or two letters are a query only if it has them.

    Example:
        >>> [is_query(text, "how long is it") for text in ("Nile length", "NO ANSWER", "Hi")]
        [True, False, False]
    """
    count = len(re.findall(r"[^\W_]", text))
    if failure_in(text, query) is not None:
        return False
    if not count or len(text) > MAX_QUERY_LENGTH:
        return False
    remains = _STRUCTURE.search(text)
    if remains is not None and remains[0] not in query:
        return False
    if count < (2 if re.search(f"[{UNSPACED}]", text) else 3):
        return text.casefold() in query.casefold()
    return is_question(text) or not (_NO_QUERY.fullmatch(text) or is_unknown(text))


def _one_mark(text: str) -> str:
    return text[: len(text.rstrip("?？")) + 1]


# Signs and words between questions in one line.
_CONNECTION = re.compile(
    r"\A[\s;；,，|、/•&»+]{0,9}(?:(?:and\sthen|and|then|以及|和)\s"
    r"|(?:first|second|third|last)(?:ly)?,\s|(?:finally|next|then),\s)?\s{0,3}",
    re.I,
)

_QUOTED_QUESTION = re.compile(r"[\"“「]([^\"“”「」?？]{2,300}[?？])[\"”」]")


def _quoted_questions(text: str) -> list[str]:
    """Return the questions in quotes if at least two and nothing but "and" is between them."""
    found = [*_QUOTED_QUESTION.finditer(text)]
    if len(found) < 2 or _QUESTION.match(text[: found[0].start()]):
        return []
    for before, behind in pairwise(found):
        if not _BETWEEN.fullmatch(text, before.end(), behind.start()):
            return []
    rest = text[found[-1].end() :]
    return [] if re.search("[?？]", rest) else [match[1] for match in found]


_BETWEEN = re.compile(r"[\s,;、，；]{0,9}(?:and|or|then|以及|和|或)?\s{0,9}", re.I)


def _asked_parts(text: str) -> list[str]:
    """Return the parts of a text that end with a question mark outside of a quotation."""
    parts: list[str] = []
    open_part = ""
    end = max(map(text.rfind, "?？")) + 1
    for asked in _ASKED.findall(text[:end]):
        open_part += asked
        if not _is_quoting(open_part):
            parts.append(open_part)
            open_part = ""
    if open_part:
        mark = text[end : end + 1]
        parts.append(open_part + (mark if mark in '"”' else ""))
    return parts


def _is_quoting(text: str) -> bool:
    """Return whether a quotation in a text is open. A quotation around a whole text is not."""
    start = text.lstrip(' ;；,，"“')
    is_odd = start.count('"') % 2 == 1 and not text.lstrip().startswith('"')
    return len(text) < _MAX_OPEN and (is_odd or start.count("“") > start.count("”"))


_MAX_OPEN = 1_000  # characters of a question with an open quotation


def split_questions(text: str, *, is_item: bool = False) -> list[str]:
    """Return the questions of a text that end with a mark, without sentences before them.

    Args:
        text: The text.
        is_item: Whether the text is an item of a list. "Should I …?" is then no offer.

    Example:
        >>> split_questions("We need two things. How long is it?? How wide is it?")
        ['How long is it?', 'How wide is it?']
    """
    quoted = _quoted_questions(text)
    if quoted:
        return quoted
    questions = []
    for asked in _asked_parts(text):
        *_, last = re.split(r"(?<=[.!])\s+(?=[A-Z])|(?<=[。！；])", asked)
        last = _CONNECTION.sub("", last)
        asked = _CONNECTION.sub("", asked)
        questions.append(_one_mark(strip_markup(last if _QUESTION.match(last.strip()) else asked)))
    if len(questions) == 1 and is_item:
        return [text for text in questions if _WORD.search(text)]
    return [text for text in questions if _WORD.search(text) and not _OFFER.match(text)]


def parse_query(answer: str, query: str = "") -> str:
    """Return the rewritten query in a model's answer.

    Raises:
        ValueError: If the answer has no query, or is a statement instead of a question.

    Example:
        >>> parse_query("Sure! Rewritten question: **How long is the Nile?**")
        'How long is the Nile?'
    """
    text = usable_text(answer, query)
    is_own = normalize(text) in normalize(query) or _begins_like(text, query)
    if "\n" not in text and is_own and is_query(text, query):
        return text
    items = read_items(answer, QUERY_KEYS, query) or ()
    for item in sorted(items, key=lambda item: not item.labeled):
        found = _one_mark(strip_markup(_without_remark(item.text, query)))
        check_no_tag(found, query)
        if is_query(found, query):
            if is_question(query) and _is_statement(item.text):
                raise ValueError("the answer is a statement, and not the question in other words")
            return found
    raise ValueError(f"the answer has no query of at most {MAX_QUERY_LENGTH} characters")


_LEAD = re.compile(r"\W{0,9}\w{1,30}(?: \d{1,3})?[^\w\s]{0,9}\s?")


def _begins_like(text: str, query: str) -> bool:
    """Return whether a text begins with the same bullet, label or mark as the user's question."""
    lead = _LEAD.match(text)
    if lead is None or not re.search(r"[^\w\s]", lead[0].strip(" \"'“”‘’¿¡")):
        return False
    return query.strip().casefold().startswith(lead[0].strip().casefold())


_ARROW = re.compile(r"(.{1,400}?)\s(?:[-=]?>|→|⇒|➡)\s(.+)")


def _without_remark(text: str, query: str) -> str:
    """Return a rewritten query without the old query before it, or a remark behind it."""
    arrow = _ARROW.fullmatch(text)
    if arrow is not None and _same(arrow[1]) == _same(query):
        text = arrow[2]
    return re.sub(r"(?<=[?？])\s?[(（][^()（）?？]{1,100}[)）]\s{0,9}\Z", "", text)


def _listed(items: Sequence[Item]) -> list[str]:
    """Return the items of a list, or all items without a list."""
    return [item.text for item in items if item.listed] or [item.text for item in items]


def parse_phrasings(answer: str, query: str, limit: int) -> list[str]:
    """Return other phrasings of a query, without the query itself.

    Raises:
        ValueError: If the answer has no other phrasing.

    Example:
        >>> parse_phrasings("1. Nile length\\n2. How many km is the Nile?", "How long is it?", 3)
        ['Nile length', 'How many km is the Nile?']
    """
    phrasings: list[str] = []
    items = read_items(answer, QUERY_KEYS, query) or ()
    is_list = any(item.listed for item in items)
    for text in _listed(items):
        if re.search("[?？]", text):
            phrasings += split_questions(text)
        elif is_list or not (is_question(query) and _is_statement(text)):
            phrasings.append(strip_markup(text))
    return _usable(phrasings, query, limit, "other phrasing")


def parse_sub_questions(answer: str, query: str, limit: int) -> list[str]:
    """Return the parts of a question, or an empty list for the answer NONE.

    Raises:
        ValueError: If the answer has no question.

    Example:
        >>> parse_sub_questions("1. Who wrote Brand?\\n2. Where was he born?", "Where?", 5)
        ['Who wrote Brand?', 'Where was he born?']
        >>> parse_sub_questions("NONE", "Who wrote it?", 5)
        []
    """
    items = read_items(answer, QUERY_KEYS, query)
    if items is None:
        return []
    questions = _parts(items)
    if questions and {*map(_same, questions)} == {_same(query)}:
        return []
    return _usable(questions, query, limit, "question")


def _parts(items: Sequence[Item]) -> list[str]:
    """Return the parts of a question.

    These are all items of a list. Without a list, they are the lines around a question.
    """
    if any(item.listed for item in items):
        return [part for item in items if item.listed for part in _questions_of(item)]
    quoted = [part for item in items for part in _quoted_questions(item.text)]
    if quoted:
        return quoted
    lines = [item for item in items if not _is_statement(item.text)]
    asked = [item for item in lines if is_question(item.text) and not _OFFER.match(item.text)]
    if not asked and len(lines) < 2:
        return []
    if len(asked) == 1 and len(items) > 1 and not asked[0].text.endswith(("?", "？")):
        return _questions_of(asked[0])
    if asked or len(lines) == len(items):
        parts = [part for item in lines for part in _questions_of(item)]
        return [part for part in parts if not _OFFER.match(part)]
    return []


def _questions_of(item: Item) -> list[str]:
    """Return the questions in an item, or the whole item if it has no question mark."""
    if re.search("[?？]", item.text):
        return split_questions(item.text, is_item=item.listed)
    return [strip_markup(item.text)]


def _usable(texts: Sequence[str], query: str, limit: int, what: str) -> list[str]:
    """Return the different queries among texts, without the query itself."""
    queries: dict[str, str] = {}
    for text in texts:
        check_no_tag(text, query)
        if is_query(text, query) and _same(text) != _same(query):
            queries.setdefault(_same(text), text)
    if not queries:
        raise ValueError(f"the answer has no {what}")
    return list(queries.values())[:limit]


def _same(text: str) -> str:
    """Return a key without spaces and punctuation, equal for near-copies."""
    return " ".join(re.findall(r"[\w+#]+", normalize(text)))


_ROUTE_KEYS = (
    "names",
    "name",
    "routes",
    "route",
    "choice",
    "tool",
    "tool_name",
    "source",
    "datasource",
    "destination",
    "selected",
    "selection",
    "index",
    "选择",
    "工具",
    "名称",
)


def parse_route(answer: str, names: Sequence[str]) -> str:
    """Return the first name that a model chose, by name or number.

    Raises:
        ValueError: If the model chose none of the names.

    Example:
        >>> parse_route('{"name": "web"}', ["docs", "web"]), parse_route("2", ["docs", "web"])
        ('web', 'web')
    """
    text = read_text(answer, (*_ROUTE_KEYS, *TEXT_KEYS))
    by_name = {name.casefold(): name for name in names}
    longest_first = "|".join(map(re.escape, sorted(by_name, key=len, reverse=True)))
    found = re.findall(rf"(?<![a-z0-9_])(?:{longest_first})(?![a-z0-9_])", text.casefold())
    chosen = [by_name[name] for name in found]
    if not chosen and len(re.findall(r"\w+", text)) <= 5:
        numbers = map(int, re.findall(r"(?<![\d.-])\d{1,3}(?![\d.]*\d)", text))
        chosen = [names[number - 1] for number in numbers if 1 <= number <= len(names)]
    if not chosen:
        raise ValueError(f"the answer names none of {', '.join(map(repr, names))}")
    return chosen[0]
