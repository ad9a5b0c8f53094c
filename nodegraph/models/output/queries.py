"""Parse the queries in a model's answer: rewritten queries, alternative phrasings or sub-questions.

If an answer contains none of the requested items, an error is raised. The result is empty only if
the model answered NONE or [].
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .additions import without_additions
from .answer_text import is_no_answer, normalize, usable_text
from .chinese_script import chinese_pattern
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
    is_short_name,
    is_statement,
    one_mark,
    quoted_questions,
    split_questions,
    without_remark,
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
"""The names of JSON keys or tags that contain queries."""

_MAX_LABEL = 12  # maximum number of characters of an unknown label

# A separator after a question in a line of several queries.
_SEPARATOR = re.compile(r"(?<=[?？])(?P<sign>[;；]|\s[|｜/]\s)")

# A translation of a Chinese question.
_TRANSLATION = re.compile(r"(?<=[?？])\s?[(（][^()（）\u3400-\u9fff]{8,300}[)）]\s{0,9}\Z")

# The mark of the best of several rewritten queries.
_RECOMMENDED = chinese_pattern(
    r"\s?[(（\[【](?P<mark>recommended|best|preferred|推荐|最佳|首选)[)）\]】]\Z", re.I
)


def _without_mark(text: str, query: str) -> str:
    """Remove the mark of the best query, unless the user wrote the same word."""
    found = _RECOMMENDED.search(text)
    if found is None or found["mark"].casefold() in query.casefold():
        return text
    return text[: found.start()]


def usable_signs(answer: str, query: str) -> OwnSigns:
    """Check that an answer is usable, and protect special characters from the user's question.

    Raises:
        ValueError: If the answer is not usable (see ``usable_text``).
    """
    usable_text(answer, query)
    return protect_signs(answer, query)


def parse_rewrite(answer: str, query: str) -> str:
    """Return the rewritten query in a model's answer, without text that the model added around it.

    Raises:
        ValueError: If the answer does not contain a query, or is a statement instead of a question.

    Example:
        >>> parse_rewrite("Bot: How long is the Nile? [corrected]", "hw long is teh nile")
        'How long is the Nile?'
    """
    return parse_query(answer, query, is_rewrite=True)


def parse_query(answer: str, query: str = "", *, is_rewrite: bool = False) -> str:
    """Return the query in a model's answer.

    Args:
        answer: The answer of the model.
        query: The user's question.
        is_rewrite: Whether the prompt forbids adding words to the question.

    Raises:
        ValueError: If the answer does not contain a query, or is a statement instead of a question.

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
    """Return the items that may be queries. Items with a label are returned first.

    Raises:
        ValueError: If the first text is a statement instead of a question.
    """
    queries: list[Item] = []
    asked = [item for item in items if (item.listed or is_rewrite) and is_asked(item.text)]
    # Matches "1. Fix it. 2. How long is the Nile?", and announcements in any language.
    if len(asked) == 1 and not is_offer(asked[0].text):
        items = [*asked, *items]
    recommended = [item for item in items if _without_mark(item.text, query) != item.text]
    if len(recommended) == 1:
        items = [recommended[0]._replace(labeled=True), *items]
    for item in sorted(items, key=_is_after_labeled):
        text = _without_mark(without_remark(item.text), query)
        if re.search("[\u3400-\u9fff]", text):
            text = _TRANSLATION.sub("", text)
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


def _is_after_labeled(item: Item) -> bool:
    """Return whether items with a label precede an item. A labeled statement has no precedence."""
    return not item.labeled or is_statement(item.text)


def _new_query(queries: Sequence[Item], query: str) -> str:
    """Return the first query.

    If it only repeats the user's question, return the question after it.
    """
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
    """Return the texts of the list items in an answer.

    If the answer does not contain a list, the texts of all items are returned.
    """
    return [item.text for item in items if item.listed] or [item.text for item in items]


def parse_phrasings(answer: str, query: str, limit: int) -> list[str]:
    """Return the alternative phrasings of a query in an answer, without the query itself.

    Raises:
        ValueError: If the answer does not contain another phrasing.

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
            separator = _SEPARATOR.search(text)
            parts = [text] if separator is None else text.split(separator["sign"])
            for part in parts:
                is_asked_part = re.search("[?？]", part) is not None
                if is_asked_part:
                    phrasings += split_questions(part, is_item=is_list)
                else:
                    phrasings.append(strip_markup(part))
        elif is_list or not (is_question(query) and is_statement(text)):
            phrasings.append(strip_markup(text))
    return _usable(phrasings, own, query, is_list=is_list, what="other phrasing")[:limit]


def parse_sub_questions(answer: str, query: str, limit: int) -> list[str]:
    """Return the sub-questions in an answer, or an empty list if the model answered NONE.

    Raises:
        ValueError: If the answer does not contain a question.

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
    is_indivisible = not _INDIVISIBLE.search(query) and _is_indivisible(own.text, items)
    is_empty_list = _NONE_FIRST.match(own.text) or is_indivisible
    has_question = any(re.search("[?？]", question) for question in questions)
    if is_empty_list and not has_question:
        return []
    if _NONE_LINE.match(own.text) and not any(item.listed for item in items):
        return []
    if items and all(is_no_answer(item.text) for item in items):
        return []
    is_list = any(item.listed for item in items)
    if {same(question) for question in questions} == {same(query)}:
        return []
    return _usable(questions, own, query, is_list=is_list, what="question")[:limit]


def _is_indivisible(text: str, items: Sequence[Item]) -> bool:
    """Return whether a text states that the question cannot be split.

    In a list, all items must state this, because "cannot be split" may be part of a question.
    """
    listed = [item for item in items if item.listed]
    if len(listed) > 1:
        return all(_INDIVISIBLE.search(item.text) for item in listed)
    return _INDIVISIBLE.search(text) is not None


# Matches "NONE (the question is simple)" and "无。原问题足够简单".
_NONE_FIRST = chinese_pattern(
    r"\W{0,9}(?:(?:[^\W\d_]{2,12}\ ?\(|)NONE\b|None\ (?:are\ )?(?:needed|required|necessary)\b"
    r"|无(?=\W|\Z))"
    r"[^?？]{0,300}\Z"
)

_NONE_LINE = chinese_pattern(r"\W{0,9}(?:NONE|无)\W{0,9}\n")

# Matches "The question is already simple." and "该问题无需分解。".
_INDIVISIBLE = chinese_pattern(
    r"""(?:\b(?:already|no\ need|cannot|can['’]t|not\ need)|n['’]t\ need)\b[^.\n]{0,40}
      \b(?:simple|broken|break|split|decompos|divid)
    |\bno\ (?:simpler|further|sub-?)\ ?(?:sub-?)?questions?\b|(?:无|没有)子问题
    |(?:无需|不需要?|不用|不必|不能|不可|无法)(?:再|进一步|继续)?(?:进行)?(?:分解|拆分|细分|分(?=\W|\Z))|足够简单""",
    re.I | re.X,
)


def _parts(items: Sequence[Item]) -> list[str]:
    """Return the sub-questions among some items.

    If the answer contains a list, these are all its items. Otherwise they are the lines from the
    first to the last question.
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
    """Return the questions in items. An item without a question mark is returned as a whole."""
    questions: list[str] = []
    for item in items:
        if re.search("[?？]", item.text):
            split = split_questions(item.text, is_item=item.listed)
            questions += [without_frames(question) for question in split]
        else:
            questions.append(strip_markup(item.text))
    return questions


def _usable(
    texts: Sequence[str], own: OwnSigns, query: str, *, is_list: bool, what: str
) -> list[str]:
    """Return the texts that are usable as queries, excluding duplicates and the original query.

    Args:
        texts: The texts from the answer.
        own: The signs of the user's question, which are restored in the queries.
        query: The user's question.
        is_list: Whether the texts are items of a list. A list may contain short names such as "Go"
            together with longer queries.
        what: The name of such a text in the error message.

    Raises:
        ValueError: If no text is usable.
    """
    queries: dict[str, str] = {}
    copy = same(query)
    has_long_query = False
    for text in texts:
        check_no_tag(text, query)
        key = same(text)
        if key == copy:
            continue
        is_long = is_query(text, query)
        if is_long or (is_list and is_short_name(text)):
            queries.setdefault(key, own.restored(text))
        has_long_query = has_long_query or is_long
    if not has_long_query:
        raise ValueError(f"the answer has no {what}")
    return list(queries.values())
