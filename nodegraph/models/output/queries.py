"""Read queries and questions out of what a model answers, as it likes to write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .cleaning import says_none
from .items import bare, each_once, normal, strings, unlabelled
from .lines import KEYS, Line, json_in, lines_of, read_answer, unordered

_SIMPLE = re.compile(
    r"""[^\n]{0,80}?(?:\balready\b[^\n]{0,20}\b(?:simple|atomic|clear|single)
      |\b(?:no|not|n't|without)\b[^\n]{0,40}\b(?:decompos|break|split|sub-?questions?|sub-?quer)
      |\b(?:cannot|can't|can\ not)\ be\ (?:further\ )?(?:decomposed|broken|split|divided)
      |(?:is|single|a)\s+(?:simple|atomic)(?:\ question|\ query|,|\.|$)
      |(?:无需|不需要?|不必|不用|无须|没有必要|不能|无法)[^\n]{0,6}(?:再|继续|进一步)?(?:分解|拆分|拆解|细分)
      |(?:没有|无)子问题|(?:已经|已|本身)(?:很|足够|够|就|是)*(?:简单|单一|明确|一个简单))""",
    re.I | re.X,
)


def read_query(answer: str, query: str = "") -> str:
    """Return the one query in a model's answer, in place of another.

    Raises:
        ValueError: If there is none, or it answers the other one.

    Example:
        >>> read_query("Sure! Rewritten question: **How long is the Nile?**")
        'How long is the Nile?'
    """
    lines = [line for line in lines_of(read_answer(answer)) if not line.is_original]
    # What is labelled as the rewriting goes before the rest.
    for line in sorted(lines, key=lambda line: line.kind is None):
        text = asked_once(bare(line.text))
        if not is_query(text):
            continue
        if answers(line.text, query):
            raise ValueError("the answer is a statement, and not the question in other words")
        return text
    raise ValueError(f"there is no query of at most {LONGEST_QUERY} characters in the answer")


def read_phrasings(answer: str, query: str, limit: int) -> list[str]:
    """Return other phrasings of a query, not the query itself.

    Raises:
        ValueError: If there is none.

    Example:
        >>> read_phrasings("1. Nile length\\n2. How many km is the Nile?", "How long is it?", 3)
        ['Nile length', 'How many km is the Nile?']
    """
    lines = [line for line in lines_of(read_answer(answer)) if not line.is_original]
    listed = [line for line in lines if line.listed]
    found = []
    for line in listed or lines:
        if "?" in line.text or "？" in line.text:
            found += questions_in(line.text)
        elif not answers(line.text, query):
            found.append(bare(line.text))
    return _some(found, query, limit, "other phrasing")


def read_sub_questions(answer: str, query: str, limit: int) -> list[str]:
    """Return the questions that a question was taken apart into; none where it is simple.

    Raises:
        ValueError: If there is no question in the answer, and it doesn't say that it needs none.

    Example:
        >>> read_sub_questions("一、谁写了《红楼梦》？\\n二、他生于哪一年？", "作者生于哪年？", 5)
        ['谁写了《红楼梦》？', '他生于哪一年？']
        >>> read_sub_questions("The question is already simple.", "Who wrote it?", 5)
        []
    """
    text = read_answer(answer)
    value = json_in(text)
    if says_none(text) or (value is not None and not any(map(str.strip, strings(value, KEYS)))):
        return []
    lines = [line for line in lines_of(text) if not line.is_original]
    asked = _asked(lines, value)
    listed = [question for question, is_listed in asked if is_listed]
    found = listed or [question for question, _ in asked]
    if not listed and _SIMPLE.match(text):
        return []
    if found and all(normal(each) == normal(query) for each in found):
        return []
    return _some(found, query, limit, "question")


def _asked(lines: Sequence[Line], value: Any) -> list[tuple[str, bool]]:
    """Return what lines ask, and whether in a list: questions, or phrases that serve as well."""
    asked = [(each, line.listed) for line in lines for each in questions_in(line.text)]
    if not asked:  # some leave out the question marks
        unmarked = [line for line in lines if "?" not in line.text and "？" not in line.text]
        bared = [(bare(line.text), line.listed) for line in unmarked]
        asked = [(each, listed) for each, listed in bared if asks(each)]
    in_list = _has_list(value)
    if (asked and not in_list) or (value is not None and not in_list):  # {"error": "..."}
        return asked
    phrases = [line.text for line in lines if line.listed and is_phrase(line.text)]
    return [(bare(each), True) for each in phrases] or asked


def _has_list(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_list, value.values()))
    return isinstance(value, list)


def _some(found: Sequence[str], query: str, limit: int, what: str) -> list[str]:
    """Return what can be used, each once, ``limit`` at most."""
    good = [each for each in found if is_query(each) and normal(each) != normal(query)]
    if not good:
        raise ValueError(f"there is no {what} in the answer")
    return each_once(good)[:limit]


LONGEST_QUERY = 400
"""Characters of a query that a model made, at most; one that is longer is not used."""

_LONGEST_PHRASE = 200

_AROUND = "*_`\"”' "

_MARKS = re.compile(r"[?？]+[\"'”’」』)）*_`]*")

# A sentence begins here: of one before the question only the question is wanted.
_SENTENCE = re.compile(r"(?<=[.!])\s+(?=[A-Z\u4e00-\u9fff])|(?<=[。！])")

_ASKS = re.compile(
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|should"
    r"|would|will|has|have|in (?:what|which))\b"
    r"|.*(?:什么|什麼|为何|为什么|如何|怎[么样]|哪|谁|几|多少|多[久长大高远重]|是否|吗|何[时地人])",
    re.I,
)

_TELLS = re.compile(
    r"(?:explain|describe|list|find|tell|give|name|show|compare|define|summari[sz]e|identify|search"
    r"|outline|discuss|provide|look)\b|(?:请|解释|说明|介绍|列出|描述|比较|查找|查询|搜索|概述|分析)",
    re.I,
)

_OFFERS = re.compile(
    r"(?:would|do) you (?:like|want|need)|(?:shall|should|can|may|could) i\b|(?:can|could) you"
    r"|is (?:this|that|there anything)|does (?:this|that) help|how (?:can|may) i help"
    r"|what (?:would you like|can i)|(?:请问)?(?:您|你)(?:是否)?(?:想|需要|希望|还有|可以|能)"
    r"|(?:还)?需要我|有什么(?:可以|我能)|我(?:可以|能)帮",
    re.I,
)


def asks(text: str) -> bool:
    """Tell whether a text is a question, with or without its mark.

    Example:
        >>> asks("how long is the Nile"), asks("尼罗河有多长"), asks("The Nile is long.")
        (True, True, False)
    """
    stripped = text.strip()
    return stripped.endswith(("?", "？")) or _ASKS.match(stripped) is not None


def asked_once(text: str) -> str:
    """Return a question with one mark at its end, where a model writes several.

    Example:
        >>> asked_once("How long is it??"), asked_once("它有多长？?")
        ('How long is it?', '它有多长？')
    """
    stem = text.rstrip("?？")
    return text[: len(stem) + 1]


def answers(line: str, query: str) -> bool:
    """Tell whether a line states something where the query asks.

    Example:
        >>> answers("It is 6,650 km long.", "How long is it?"), answers("Its length.", "length")
        (True, False)
    """
    text = line.strip().strip(_AROUND)
    states = text.endswith((".", "。", "!", "！")) and not text.endswith("...")
    return states and asks(query) and not asks(text) and not _TELLS.match(text)


def is_query(text: str) -> bool:
    """Tell whether a text can be searched for: it has words, and not too many."""
    return len(text) <= LONGEST_QUERY and re.search(r"\w", text) is not None


def is_phrase(line: str) -> bool:
    """Tell whether a line of a list can be searched for: short, in words, and no statement."""
    text = line.strip().strip(_AROUND)
    words = re.search(r"[^\W\d_]{2}", text) is not None and not _OFFERS.match(text)
    return words and len(text) <= _LONGEST_PHRASE and not text.endswith((".", "。", "!", "！"))


def questions_in(line: str) -> list[str]:
    """Return the questions that end with a mark in a line, without what stands before a list.

    Example:
        >>> questions_in("We need two things. How long is it? And how wide?")
        ['How long is it?', 'how wide?']
    """
    found = []
    rest = unlabelled(line)
    begin = 0
    for mark in _MARKS.finditer(rest):
        part = rest[begin : mark.end()]
        begin = mark.end()
        *_, last = _SENTENCE.split(part)
        last = last if _ASKS.match(last) else part  # "Who was St. Paul?" is one sentence
        found.append(asked_once(bare(unordered(unlabelled(last)))))
    return [each for each in found if re.search(r"\w", each) and not _OFFERS.match(each)]


_ROUTE_KEYS = ("names", "name", "routes", "route", "choices", "choice", "selections", "selection")


def read_routes(answer: str, names: Sequence[str], multiple: bool = False) -> list[str]:
    """Return which of some names a model chose, by name or number, in the order it says them.

    Raises:
        ValueError: If it chose none of them.

    Example:
        >>> read_routes('{"names": ["web"]}', ["docs", "web"]), read_routes("2", ["docs", "web"])
        (['web'], ['web'])
    """
    text = read_answer(answer)
    value = json_in(text)
    if value is not None:
        text = "\n".join(strings(value, (*_ROUTE_KEYS, *KEYS)))
    for part in (text.split("\n")[0], text):
        chosen = _named(part, names) or _numbered(part, names)
        if chosen:
            everywhere = _named(text, names) or _numbered(text, names)
            return everywhere if multiple else chosen[:1]
    raise ValueError(f"the answer names none of {', '.join(map(repr, names))}")


def _named(text: str, names: Sequence[str]) -> list[str]:
    """Return the names that stand in a text as words of their own, as they come."""
    found: dict[str, int] = {}
    taken = text.casefold()
    for name in sorted(names, key=len, reverse=True):  # a name may be part of another
        word = re.escape(name.casefold())
        begin = r"(?<![a-z0-9_])" if name[0].isascii() else ""
        end = r"(?![a-z0-9_])" if name[-1].isascii() else ""
        if match := re.search(begin + word + end, taken):
            found[name] = match.start()
            taken = re.sub(begin + word + end, lambda m: "\0" * len(m[0]), taken)
    return sorted(found, key=found.__getitem__)


def _numbered(text: str, names: Sequence[str]) -> list[str]:
    """Return the names whose numbers a short text says, as they come."""
    numbers = [int(number) for number in re.findall(r"(?<![\d.-])\d{1,3}(?![\d.]*\d)", text)]
    short = len(re.findall(r"\w+", text)) <= 3 * len(numbers) + 2
    chosen = [names[number - 1] for number in numbers if short and 1 <= number <= len(names)]
    return list(dict.fromkeys(chosen))
