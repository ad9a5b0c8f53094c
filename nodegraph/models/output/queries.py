"""Parse the queries in a model's answer: a rewritten query, other phrasings or sub-questions.

An answer without any of the requested items raises an error. The result is empty only for an answer
such as NONE or [].
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .additions import without_additions
from .answer_text import normalize, usable_text
from .frames import is_asked, same, without_frames
from .items import Item, read_items
from .json_values import TEXT_KEYS
from .lines import strip_markup
from .own_signs import OwnSigns, protect_signs
from .questions import (
    MAX_QUERY_LENGTH,
    is_offer,
    is_query,
    is_question,
    is_statement,
    one_mark,
    quoted_questions,
    split_questions,
)
from .tags import check_no_tag

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

_MAX_LABEL = 12  # characters of an unknown label

# A remark in parentheses after a question.
_REMARK = re.compile(r"(?<=[?？])\s?[(（][^()（）?？]{1,100}[)）]\s{0,9}\Z")


def usable_signs(answer: str, query: str) -> OwnSigns:
    """Return an answer in which signs of the user's question are not read as markup.

    Raises:
        ValueError: If the answer is unusable (see ``usable_text``).
    """
    usable_text(answer, query)
    return protect_signs(answer, query)


def parse_rewrite(answer: str, query: str) -> str:
    """Return the rewritten query in a model's answer, without words that add nothing to it.

    Raises:
        ValueError: If the answer contains no query, or is a statement instead of a question.

    Example:
        >>> parse_rewrite("Bot: How long is the Nile? [corrected]", "hw long is teh nile")
        'How long is the Nile?'
    """
    return parse_query(answer, query, is_rewrite=True)


def parse_query(answer: str, query: str = "", *, is_rewrite: bool = False) -> str:
    """Return the query in a model's answer.

    Args:
        answer: The answer.
        query: The user's question.
        is_rewrite: Whether the prompt forbids adding words to the question.

    Raises:
        ValueError: If the answer contains no query, or is a statement instead of a question.

    Example:
        >>> parse_query("Sure! Rewritten question: **How long is the Nile?**")
        'How long is the Nile?'
    """
    text = usable_text(answer, query)
    own = protect_signs(answer, query)
    asked = normalize(query)
    words = normalize(text)
    if words == asked:
        return text
    if words in asked and "\n" not in text and is_query(text, query):
        return text
    items = read_items(own.text, QUERY_KEYS, query) or ()
    queries = _queries(items, query, is_rewrite=is_rewrite)
    if not queries:
        raise ValueError(f"the answer has no query of at most {MAX_QUERY_LENGTH} characters")
    return own.restored(_new_query(queries, query))


def _queries(items: Sequence[Item], query: str, *, is_rewrite: bool) -> list[Item]:
    """Return the items that may be a query, those with a label first.

    Raises:
        ValueError: If the first text is a statement instead of a question.
    """
    queries: list[Item] = []
    asked = [item for item in items if item.listed and is_asked(item.text)]
    if len(asked) == 1 and not is_offer(asked[0].text):  # "1. Fix it. 2. How long is the Nile?"
        items = [*asked, *items]
    for item in sorted(items, key=lambda item: not item.labeled):
        text = _REMARK.sub("", item.text)
        if is_rewrite:
            text = without_additions(text, query)
        text = one_mark(strip_markup(text))
        check_no_tag(text, query)
        if not is_query(text, query):
            continue
        if not queries and is_question(query) and is_statement(item.text):
            raise ValueError("the answer is a statement, and not the question in other words")
        queries.append(item._replace(text=text))
    return queries


def _new_query(queries: Sequence[Item], query: str) -> str:
    """Return the first query, or a question that follows a labeled copy of the user's question."""
    copy = same(query)
    first = same(queries[0].text)
    is_labeled = queries[0].labeled or first != copy
    is_short = len(first) < len(copy) + _MAX_LABEL
    if copy and is_labeled and is_short and first.endswith(copy):
        for item in queries[1:]:
            if is_question(item.text) and not same(item.text).endswith(copy):
                return item.text
    return queries[0].text


def _listed(items: Sequence[Item]) -> list[str]:
    """Return the items of a list, or all items if there is no list."""
    return [item.text for item in items if item.listed] or [item.text for item in items]


def parse_phrasings(answer: str, query: str, limit: int) -> list[str]:
    """Return other phrasings of a query, without the query itself.

    Raises:
        ValueError: If the answer contains no other phrasing.

    Example:
        >>> parse_phrasings("1. Nile length\\n2. How many km is the Nile?", "How long is it?", 3)
        ['Nile length', 'How many km is the Nile?']
    """
    own = usable_signs(answer, query)
    phrasings: list[str] = []
    items = read_items(own.text, QUERY_KEYS, query) or ()
    is_list = any(item.listed for item in items)
    for text in _listed(items):
        if re.search("[?？]", text):
            phrasings += split_questions(text)
        elif is_list or not (is_question(query) and is_statement(text)):
            phrasings.append(strip_markup(text))
    return _usable(phrasings, own, query, limit, "other phrasing")


def parse_sub_questions(answer: str, query: str, limit: int) -> list[str]:
    """Return the parts of a question, or an empty list for the answer NONE.

    Raises:
        ValueError: If the answer contains no question.

    Example:
        >>> parse_sub_questions("1. Who wrote Brand?\\n2. Where was he born?", "Where?", 5)
        ['Who wrote Brand?', 'Where was he born?']
        >>> parse_sub_questions("NONE", "Who wrote it?", 5)
        []
    """
    own = usable_signs(answer, query)
    items = read_items(own.text, QUERY_KEYS, query)
    if items is None:
        return []
    questions = _parts(items)
    if {same(question) for question in questions} == {same(query)}:
        return []
    return _usable(questions, own, query, limit, "question")


def _parts(items: Sequence[Item]) -> list[str]:
    """Return the parts of a question.

    These are all items of a list. Without a list, they are the lines around a question.
    """
    listed = [item for item in items if item.listed]
    if listed:
        return _all_questions(listed)
    quoted: list[str] = []
    for item in items:
        quoted += quoted_questions(item.text)
    if quoted:
        return quoted
    lines = [item for item in items if not is_statement(item.text)]
    asked = [item for item in lines if is_question(item.text) and not is_offer(item.text)]
    if not asked and len(lines) < 2:
        return []
    if len(asked) == 1 < len(items) and not asked[0].text.endswith(("?", "？")):
        return _all_questions(asked)
    if asked or len(lines) == len(items):
        return [part for part in _all_questions(lines) if not is_offer(part)]
    return []


def _all_questions(items: Sequence[Item]) -> list[str]:
    """Return the questions in items. An item without a question mark is returned whole."""
    questions: list[str] = []
    for item in items:
        if re.search("[?？]", item.text):
            split = split_questions(item.text, is_item=item.listed)
            questions += [without_frames(question) for question in split]
        else:
            questions.append(strip_markup(item.text))
    return questions


def _usable(texts: Sequence[str], own: OwnSigns, query: str, limit: int, what: str) -> list[str]:
    """Return the distinct queries among texts, without the query itself."""
    queries: dict[str, str] = {}
    copy = same(query)
    for text in texts:
        check_no_tag(text, query)
        key = same(text)
        if key != copy and is_query(text, query):
            queries.setdefault(key, own.restored(text))
    if not queries:
        raise ValueError(f"the answer has no {what}")
    return list(queries.values())[:limit]
