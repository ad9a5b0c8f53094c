"""Parse the items in an answer. Items are lines of a list, or texts in JSON, tags or tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .announcements import without_announcement
from .answer_text import is_no_answer, read_json
from .bullets import indent_of, split_bullet, with_bullets
from .chinese_script import chinese_pattern
from .frames import is_asked, without_frames
from .json_values import TEXT_KEYS, texts_in
from .lines import (
    LABEL,
    REMARK,
    is_label_line,
    label_pattern,
    unwrap,
    without_bold_label,
)
from .tables import read_table, text_column

_MAX_LINES = 5_000

# A line in bold, or a heading.
_HEADING = re.compile(r"\s*(?:\*\*[^*]+\*\*[:：]?|#{1,6} .*)\s*")

# The name of a section, as in a configuration file.
_SECTION = re.compile(r"\s{0,9}\[[a-z_]{1,20}\]\s{0,9}")

# A remark in parentheses below the items.
_NOTE = re.compile(
    r"\s{0,9}[*_]{0,2}(?:\([^()?？\n]{4,300}\)|（[^（）?？\n]{4,300}）)[*_.。]{0,3}\s{0,9}"
)

_ANSWER = label_pattern(r"(?:final\ )?answer|A|action|最终答案|答案?|回答|行动|操作")

_QUOTES = tuple("\"'“‘「『«")


class Item(NamedTuple):
    """An item of an answer. It is a line of plain text or a line in a JSON string.

    Attributes:
        text: The text without its bullet, number and label.
        listed: Whether the line is an item of a list or has a numbered label.
        labeled: Whether the line has a label or comes from JSON.
    """

    text: str
    listed: bool
    labeled: bool


def read_items(answer: str, keys: Sequence[str] = TEXT_KEYS, query: str = "") -> list[Item] | None:
    """Return the items in an answer, or None if the model answered NONE or [].

    Headings, remarks and announcements are left out. Errors are raised as in ``read_json``.

    Example:
        >>> [tuple(item) for item in read_items("Two:\\n1. **Query**: How long is it?")]
        [('How long is it?', True, True)]
    """
    text, value = read_json(answer, keys, query)
    if not text:
        return None
    if value is not None:
        lines = "\n".join(texts_in(value, keys)).split("\n")
        return [_listed_item(line, query) for line in lines if re.search(r"\w", line)]
    all_lines = text.split("\n")[:_MAX_LINES]
    rows = read_table(all_lines)
    if rows is not None:
        return [_listed_item(cell, query) for cell in text_column(rows)]
    lines = with_bullets(all_lines)
    items = _items_of(lines, query) or _answers_of(lines)
    if not items and any(_is_empty_list(line) for line in lines):
        return None
    return items


# Matches "It is already simple, so: NONE" and "子问题：无".
_NONE_AT_END = chinese_pattern(
    r".*[:：,，.。]\s?[*_\"“(（]{0,3}(?:NONE|无)[*_\"”)）.。]{0,4}\s{0,9}"
)


def _is_empty_list(line: str) -> bool:
    """Return whether a line stands for an empty list, such as "Questions: NONE"."""
    return is_no_answer(line) or _NONE_AT_END.fullmatch(line) is not None


def _listed_item(text: str, query: str) -> Item:
    """Convert a text from JSON or a table to an item."""
    return Item(without_frames(unwrap(text), query), True, True)


def _items_of(lines: Sequence[str], query: str) -> list[Item]:
    """Convert lines to items. Headings and remarks are left out."""
    items: list[Item] = []
    headings = _Headings()
    outer = 0  # number of spaces before the last item that was kept
    section = _Section()
    is_several = len(lines) > 1
    for line in lines:
        item = _item(line, query)
        if item is not None and items and _is_question_of_title(line, item, items[-1], outer):
            items[-1] = items[-1]._replace(text=item.text if item.listed else unwrap(line))
            continue
        is_remark = section.is_remark(line, item)
        is_section = is_several and _SECTION.fullmatch(line)
        if items and _NOTE.fullmatch(line):
            continue
        if item is None or is_remark or is_section:
            continue
        is_below = bool(items) and item.listed and indent_of(line) > outer + 1
        if is_below and is_asked(items[-1].text) and not is_asked(item.text):
            continue  # The line is a remark on the question above it.
        if not is_below:
            outer = indent_of(line)
        headings.add(line, item)
        items.append(item)
        section.add(item)
    items = _without_common_remarks(_without_steps(headings.removed_from(items)))
    return _without_titles(_without_common_lead(_without_tags(items, query), query), query)


class _Headings:
    """The headings of an answer, which are items only if they are numbered and nothing else is."""

    def __init__(self) -> None:
        self._titles: list[Item] = []
        self._numbered: list[Item] = []

    def add(self, line: str, item: Item) -> None:
        """Record an item if its line is a heading."""
        is_numbered = item.listed and line.startswith("#")
        if is_numbered:
            self._numbered.append(item)
        is_heading = is_numbered or (not item.listed and _HEADING.fullmatch(line))
        if is_heading and not is_asked(item.text):
            self._titles.append(item)

    def removed_from(self, items: list[Item]) -> list[Item]:
        """Return the items without headings, or the numbered headings without other text."""
        below = [item for item in items if item not in self._numbered]
        is_list_below = any(item.listed or is_asked(item.text) for item in below)
        if len(self._numbered) > 1 and not is_list_below:
            return self._numbered
        if self._numbered or any(is_asked(item.text) for item in items):
            return [item for item in items if item not in self._titles]
        return items


# Matches "[Independent] " and "【同义词】".
_TAG = re.compile(r"[\[【](?P<tag>[^\[\]【】\n]{1,30})[\]】]\s{0,4}(?=\S)")


def _without_tags(items: list[Item], query: str) -> list[Item]:
    """Remove bracketed words at the start of items if all items begin with such words.

    One of the items must be a question.
    """
    found = [_TAG.match(item.text) for item in items]
    tags = [match for match in found if match is not None]
    if len(items) < 2 or len(tags) < len(items):
        return items
    is_own = any(match["tag"].casefold() in query.casefold() for match in tags)
    if is_own or not any(is_asked(item.text) for item in items):
        return items
    pairs = zip(items, tags, strict=True)
    return [item._replace(text=item.text[match.end() :]) for item, match in pairs]


# Matches " [synonyms]", "（名词短语）" and " - uses the full name".
_REMARK_BEHIND = re.compile(
    r"(?:\s?[(（\[【][^()（）\[\]【】?？\n]{1,60}[)）\]】]|\s?(?:\s[-–—]|——)\s[^?？\n]{1,80})\Z"
)


def _without_common_remarks(items: list[Item]) -> list[Item]:
    """Remove the remarks at the end of items if all items have a remark.

    One of the remarks must follow a question mark.
    """
    found = [_REMARK_BEHIND.search(item.text) for item in items]
    remarks = [match for match in found if match is not None]
    if len(items) < 2 or len(remarks) < len(items):
        return items
    texts = [match.string[: match.start()] for match in remarks]
    if not any(is_asked(text) for text in texts) or len({*texts}) < len(texts):
        return items
    return [item._replace(text=text) for item, text in zip(items, texts, strict=True)]


def _without_steps(items: list[Item]) -> list[Item]:
    """Remove the titles of steps if each title is followed by a question in the next line."""
    titles = items[::2]
    questions = items[1::2]
    if len(titles) < 2 or any(is_asked(title.text) or not title.listed for title in titles):
        return items
    are_asked = all(is_asked(item.text) and not item.listed for item in questions)
    if not are_asked or len(titles) != len(questions):
        return items
    return questions


_MAX_TITLE_WORDS = 3


def _is_question_of_title(line: str, item: Item, title: Item, outer: int) -> bool:
    """Return whether a line is the question below a title, as in "1. Author" and "Who wrote it?".

    Args:
        line: The line.
        item: The item of the line.
        title: The item before the line.
        outer: The number of spaces before the title.
    """
    if not title.listed or is_asked(title.text):
        return False
    is_title = item.listed or len(title.text.split()) <= _MAX_TITLE_WORDS
    return is_title and is_asked(item.text) and indent_of(line) > outer + 1


_LEAD = re.compile(r"[^\W\d_][^\n:：?？—]{0,40}?(?:\s?[:：]|——|\s[–—])\s{0,4}(?=\S)")

_ONLY_AND = chinese_pattern(r"(?:and|then|or|and then|和|以及|然后)", re.I)


def _without_common_lead(items: Sequence[Item], query: str) -> list[Item]:
    """Remove items such as "and", and words with which all questions begin, such as "Need: "."""
    kept = [item for item in items if not _ONLY_AND.fullmatch(item.text)]
    found = _LEAD.match(kept[0].text) if len(kept) > 1 else None
    if found is None:
        return kept
    lead = found[0]
    is_common = all(item.text.startswith(lead) and is_asked(item.text) for item in kept)
    if not is_common or lead.strip(" :：–—").casefold() in query.casefold():
        return kept
    return [item._replace(text=item.text[len(lead) :]) for item in kept]


# Matches "Author – " and "*Year*: ".
_TITLE = re.compile(
    r"[*_]{0,2}(?P<title>[^\W\d_][^\n:：?？–—]{0,40}?)[*_]{0,2}(?:\s?[:：][*_]{0,2}\s?|\s[-–—]\s)(?=\S)"
)

_STEM = 5  # number of letters that are compared: "the founder" and "who founded it"

_PRONOUN = chinese_pattern(
    r"\b(?:it|its|he|him|his|she|her|they|them|their|this|that)\b|[它他她其该此]", re.I
)


def _without_titles(items: Sequence[Item], query: str) -> list[Item]:
    """Remove titles from items if all items have a title, as in "Author – Who wrote it?".

    All titles are kept if one of them contains a word of the user's question that is missing in the
    rest of the item.
    """
    found = [_TITLE.match(item.text) for item in items]
    titles = [match for match in found if match is not None]
    items = [item._replace(text=_without_style(item.text)) for item in items]
    if len(items) < 2 or len(titles) < len(items):
        return items
    rests = [match.string[match.end() :] for match in titles]
    asked = [rest for rest in rests if is_asked(rest)]
    is_list = all(item.listed for item in items)
    if not asked or (len(asked) < len(rests) and not is_list):
        return items
    pairs = zip(titles, rests, strict=True)
    are_needed = any(_needs_title(match["title"], rest, query) for match, rest in pairs)
    if are_needed or len({*rests}) < len(rests):
        return items
    return [item._replace(text=rest) for item, rest in zip(items, rests, strict=True)]


# Matches "Keyword style" and "Formal version".
_STYLE = chinese_pattern(
    r"(?:(?:formal|casual|informal|keywords?|natural(?: language)?|questions?|simple|short|concise"
    r"|long|detailed|technical|specific|broad|general|narrow|direct|indirect|statement|synonyms?)"
    r"(?:[ -](?:style|version|based|form|phrasing|wording))?"
    r"|(?:using? |with )?(?:(?:full|short|another|different|other) )?(?:names?|synonyms?|forms?"
    r"|sentence (?:form|structure)|perspective|angle|wording)"
    r"|(?:[换使采]?用|改变|改用|换)?(?:成|了|个|一个|不同的?)?"
    r"(?:同义词|近义词|全称|简称|句式|角度|说法|视角|关键词)(?:提问|替换|表达|表述)?|正式|口语|关键词|简短|详细|技术|通俗)",
    re.I,
)


def _without_style(text: str) -> str:
    """Remove the name of a style before a question, as in "Formal: Who wrote it?"."""
    found = _TITLE.match(text)
    if found is None or not _STYLE.fullmatch(found["title"].strip()):
        return text
    return text[found.end() :]


def _needs_title(title: str, rest: str, query: str) -> bool:
    """Return whether a text is a complete question only together with its title."""
    if _PRONOUN.search(rest):
        return True
    if not is_asked(rest) and _pieces(rest).isdisjoint(_pieces(query)):
        return True
    asked = query.casefold()
    said = rest.casefold()
    words = re.findall(r"[^\W\d_\u3400-\u9fff]{3,}|[\u3400-\u9fff]{2}", title.casefold())
    words.append(title.casefold().strip())
    return any(word in asked and word[:_STEM] not in said for word in words)


def _pieces(text: str) -> set[str]:
    """Return the words of three or more letters in a text, and pairs of Chinese characters."""
    text = text.casefold()
    pieces = {*re.findall(r"[^\W\d_\u3400-\u9fff]{3,}", text)}
    for run in re.findall(r"[\u3400-\u9fff]{2,}", text):
        pieces.update(run[at : at + 2] for at in range(len(run) - 1))
    return pieces


class _Section:
    """The state for classifying lines as items or as remarks on the preceding items."""

    def __init__(self) -> None:
        self._heading: str | None = None
        self._has_list = False
        self._all_asked = True

    def add(self, item: Item) -> None:
        """Record an item that was kept."""
        self._has_list = self._has_list or item.listed
        self._all_asked = self._all_asked and is_asked(item.text)

    def is_remark(self, line: str, item: Item | None) -> bool:
        """Process the next line, and return whether it is a remark on the preceding items."""
        if not self._has_list or not line.strip():
            return False
        label = REMARK.match(line)
        if label is not None and line[label.end() :].strip(" *_"):
            return True  # a label with its remark in the same line
        is_heading = item is None or (not item.listed and _HEADING.fullmatch(line))
        if is_heading:
            self._heading = line
            return True
        if item is None or self._heading is None or is_asked(item.text):
            return False
        heading = f"{self._heading.rstrip(' *_:：')}:"
        return self._all_asked or REMARK.match(heading) is not None


def _is_word_of(label: str, query: str) -> bool:
    """Return whether a label occurs in the user's question, and is therefore part of the text."""
    words = re.findall(r"[^\W\d_]{3,}", label.casefold())
    asked = query.casefold()
    found = [re.search(rf"\b{word}s?\b", asked) for word in words]
    return bool(words) and None not in found


def _answers_of(lines: Sequence[str]) -> list[Item]:
    """Return the questions that follow labels such as "Answer:" and "Action:"."""
    items: list[Item] = []
    for line in lines:
        label = _ANSWER.match(line)
        content = line[label.end() if label else 0 :].strip()
        if label is not None and is_asked(unwrap(content)):
            items.append(Item(unwrap(content), False, True))
    return items


# The keyword of a different prompt after a question.
_SIGNAL = chinese_pattern(
    r"(?<=[?？])\s{0,9}[\[(【*_]{0,2}(?:NO_ANSWER|无答案)[\])】*_]{0,2}[.。]?\s{0,9}\Z"
)


def _item(line: str, query: str) -> Item | None:
    """Convert a line to an item.

    Return None if the line is a heading, a remark, an announcement or blank.
    """
    text, is_listed = split_bullet(line)
    if is_label_line(line):
        return None
    text = _SIGNAL.sub("", unwrap(text))
    label = LABEL.match(text)
    content = without_announcement(text, query).strip()
    content = without_bold_label(content).removesuffix("**").strip()
    content = without_frames(content, query)
    if content[:1] in _QUOTES:
        content = content.rstrip(" ,;，；、")
    if not re.search(r"\w", content):
        return None
    if re.match(r"#{1,6}\s", line) and not is_listed and not content.endswith(("?", "？")):
        return None
    if content.endswith((":", "：")) or is_no_answer(content) or _is_empty_list(content):
        return None
    remark = REMARK.match(line)
    if remark is not None and not _is_word_of(remark[0], query):
        return None
    is_numbered = label is not None and re.search(r"[\d一二三四五]", label[0]) is not None
    return Item(unwrap(content), is_listed or is_numbered, label is not None)
