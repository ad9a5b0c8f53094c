"""Parse queries, sub-questions (with tools or without) and routes from a model's answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ...splitters.chunking import UNSPACED
from .free_text import is_unknown
from .json_values import (
    check_answer,
    clean,
    find_json,
    is_no_answer,
    parse_json,
    texts_in,
    usable_text,
    value_of,
)
from .lines import (
    QUESTION_KEYS,
    TEXT_KEYS,
    Line,
    normalize,
    parse_lines,
    split_bullet,
    strip_markup,
    strip_ordinal,
    strip_question_label,
)

MAX_QUERY_LENGTH = 400
"""Characters of a query from a model, at most. A longer one is not used."""

_MAX_PHRASE = 200

QUESTION_END = re.compile(r"[?？]+[\"'”’」』)）*_`]*")

_STRUCTURE = re.compile(
    r"""["”]\s?[:：=]\s?[\[{"“] | [\[{]\s?["“]?\w{1,40}["”]?\s?[:：=]\s?[\[{"“]
    | ["”]\s?[,;]\s?["“]\w{1,40}["”]\s?[:：] | [?？]["”]\s?[,;]\s?["“]""",
    re.X,
)

_DECORATION = "*_`\"”' "

_SENTENCE_BREAK = re.compile(r"(?<=[.!])\s+(?=[A-Z\u4e00-\u9fff])|(?<=[。！])")

_QUESTION = re.compile(
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|should"
    r"|would|will|has|have|in (?:what|which))\b"
    r"|.*(?:什么|什麼|为何|为什么|如何|怎[么样]|哪|谁|几|多少|多[久长大高远重]|是否|吗|何[时地人])",
    re.I,
)

_REQUEST = re.compile(
    r"(?:explain|describe|list|find|tell|give|name|show|compare|define|summari[sz]e|identify|search"
    r"|outline|discuss|provide|look)\b|(?:请|解释|说明|介绍|列出|描述|比较|查找|查询|搜索|概述|分析)",
    re.I,
)

_OFFER = re.compile(
    r"(?:would|do) you (?:like|want|need)|(?:shall|should|can|may|could) i\b|(?:can|could) you"
    r"|is (?:this|that|there anything)|does (?:this|that) help|how (?:can|may) i help"
    r"|what (?:would you like|can i)|(?:请问)?(?:您|你)(?:是否)?(?:想|需要|希望|还有|可以|能)"
    r"|(?:还)?需要我|有什么(?:可以|我能)|我(?:可以|能)帮",
    re.I,
)


def looks_like_question(text: str) -> bool:
    """Check whether a text begins with a question word, or has a Chinese one in it."""
    return _QUESTION.match(text) is not None


def is_question(text: str) -> bool:
    """Check whether a text is a question, with or without its mark.

    Example:
        >>> is_question("how long is the Nile"), is_question("尼罗河有多长")
        (True, True)
        >>> is_question("The Nile is long.")
        False
    """
    text = text.strip()
    return text.endswith(("?", "？")) or looks_like_question(text)


def is_statement(line: str) -> bool:
    """Check whether a line is a sentence that neither asks nor requests anything.

    Example:
        >>> is_statement("It is 6,650 km long."), is_statement("Describe the Nile.")
        (True, False)
    """
    text = line.strip().strip(_DECORATION)
    ends = text.endswith((".", "。", "!", "！")) and not text.endswith("...")
    return ends and not is_question(text) and not _REQUEST.match(text)


_NO_QUERY = re.compile(
    r"no[ _]?(?:answer|query|change)s?|unchanged|yes"
    r"|(?:不需要?|不用|不必|无需|无法)再?(?:改写|修改|改动|回答|检索)?",
    re.I,
)


def is_query(text: str, query: str = "") -> bool:
    """Check whether a text can be searched for: words, not too many, and no remains of JSON.

    Args:
        text: The text.
        query: The query that it replaces: a text of one or two letters is none, unless they are
            part of that.

    Example:
        >>> [is_query(text, "how long is it") for text in ("Nile length", "NO ANSWER", "Hi")]
        [True, False, False]
    """
    count = len(re.findall(r"\w", text))
    if not count or len(text) > MAX_QUERY_LENGTH or _STRUCTURE.search(text):
        return False
    if count < (2 if re.search(f"[{UNSPACED}]", text) else 3):
        return text.casefold() in query.casefold()
    says_nothing = _NO_QUERY.fullmatch(text) or is_unknown(text)
    return is_question(text) or not says_nothing


def is_phrase(line: str) -> bool:
    """Check whether a line of a list can be searched for: short, in words, and no sentence."""
    text = line.strip().strip(_DECORATION)
    has_words = re.search(r"[^\W\d_]{2}", text) is not None and not _OFFER.match(text)
    return has_words and len(text) <= _MAX_PHRASE and not text.endswith((".", "。", "!", "！"))


def trim_question_end(text: str) -> str:
    """Return a question with one question mark at its end, where a model writes several.

    Example:
        >>> trim_question_end("How long is it??"), trim_question_end("它有多长？?")
        ('How long is it?', '它有多长？')
    """
    return text[: len(text.rstrip("?？")) + 1]


def split_questions(line: str) -> list[str]:
    """Return the questions of a line that end with a mark, without sentences before them.

    Example:
        >>> split_questions("We need two things. How long is it? And how wide?")
        ['How long is it?', 'how wide?']
    """
    questions = []
    text = strip_question_label(line)
    start, end = 0, len(text.rstrip("。. *_`"))
    for endings in QUESTION_END.finditer(text):
        is_quoted = endings[0].rstrip("*_`")[-1:] not in "?？"
        if is_quoted and endings.end() < end:
            continue  # in the middle of the sentence
        part = text[start : endings.end()]
        start = endings.end()
        *_, last = _SENTENCE_BREAK.split(part)
        last = last if looks_like_question(last) else part  # "Who was St. Paul?" is one sentence
        questions.append(trim_question_end(strip_markup(strip_ordinal(strip_question_label(last)))))
    return [text for text in questions if re.search(r"\w", text) and not _OFFER.match(text)]


_SIMPLE = re.compile(
    r"""[^\n]{0,80}?(?:\balready\b[^\n]{0,20}\b(?:simple|atomic|clear|single)
      |\b(?:no|not|n't|without)\b[^\n]{0,40}\b(?:decompos|break|split|sub-?questions?|sub-?quer)
      |\b(?:cannot|can't|can\ not)\ be\ (?:further\ )?(?:decomposed|broken|split|divided)
      |(?:is|single|a)\s+(?:simple|atomic)(?:\ question|\ query|,|\.|$)
      |(?:无需|不需要?|不必|不用|无须|没有必要|不能|无法)[^\n]{0,6}(?:再|继续|进一步)?(?:分解|拆分|拆解|细分)
      |(?:没有|无)子问题|(?:已经|已|本身)(?:很|足够|够|就|是)*(?:简单|单一|明确|一个简单))""",
    re.I | re.X,
)

_ROUTE_KEYS = ("names", "name", "routes", "route", "choices", "choice", "selections", "selection")


def parse_query(answer: str, query: str = "") -> str:
    """Return the query in a model's answer that replaces another.

    Raises:
        ValueError: If there is none, or it answers the other one.

    Example:
        >>> parse_query("Sure! Rewritten question: **How long is the Nile?**")
        'How long is the Nile?'
    """
    lines = _candidates(usable_text(answer))
    asks = is_question(query)
    for line in sorted(lines, key=lambda line: line.kind is None):  # labelled lines first
        text = trim_question_end(strip_markup(line.text))
        if not is_query(text, query):
            continue
        if asks and is_statement(line.text):
            raise ValueError("the answer is a statement, and not the question in other words")
        return text
    raise ValueError(f"there is no query of at most {MAX_QUERY_LENGTH} characters in the answer")


def parse_phrasings(answer: str, query: str, limit: int) -> list[str]:
    """Return other phrasings of a query, not the query itself.

    Raises:
        ValueError: If there is none.

    Example:
        >>> parse_phrasings("1. Nile length\\n2. How many km is the Nile?", "How long is it?", 3)
        ['Nile length', 'How many km is the Nile?']
    """
    lines = _candidates(usable_text(answer))
    asks = is_question(query)
    phrasings = []
    for line in [line for line in lines if line.listed] or lines:
        if _asks_explicitly(line):
            phrasings += split_questions(line.text)
        elif not (asks and is_statement(line.text)):
            phrasings.append(strip_markup(line.text))
    return _usable(phrasings, query, limit, "other phrasing")


def parse_sub_questions(answer: str, query: str, limit: int) -> list[str]:
    """Return the questions that a question was decomposed into. None where it is simple.

    Raises:
        ValueError: If there is no question in the answer, and it doesn't say that it needs none.

    Example:
        >>> answer = "一、谁写了《红楼梦》？\\n二、他生于哪一年？"
        >>> parse_sub_questions(answer, "作者生于哪年？", 5)
        ['谁写了《红楼梦》？', '他生于哪一年？']
        >>> parse_sub_questions("The question is already simple.", "Who wrote it?", 5)
        []
    """
    text = usable_text(answer)
    value = find_json(text)
    if is_no_answer(text) or (value is not None and not any(texts_in(value, TEXT_KEYS))):
        return []
    candidates = _sub_questions(_candidates(text), value)
    listed = [question for question, is_listed in candidates if is_listed]
    if not listed and _SIMPLE.match(text):
        return []
    questions = listed or [question for question, _ in candidates]
    if questions and {*map(_same, questions)} == {_same(query)}:
        return []
    return _usable(questions, query, limit, "question")


def parse_routes(answer: str, names: Sequence[str], multiple: bool = False) -> list[str]:
    """Return which of some names a model chose, by name or number, in the answer's order.

    Raises:
        ValueError: If it chose none of them.

    Example:
        >>> parse_routes('{"names": ["web"]}', ["docs", "web"]), parse_routes("2", ["docs", "web"])
        (['web'], ['web'])
    """
    text = usable_text(answer)
    value = find_json(text)
    if value is not None:
        text = "\n".join(texts_in(value, (*_ROUTE_KEYS, *TEXT_KEYS)))
    everywhere = _named(text, names) or _numbered(text, names)
    first_line = text.split("\n")[0]
    chosen = _named(first_line, names) or _numbered(first_line, names) or everywhere
    if not chosen:
        raise ValueError(f"the answer names none of {', '.join(map(repr, names))}")
    return (everywhere or chosen) if multiple else chosen[:1]


def _candidates(text: str) -> list[Line]:
    return [line for line in parse_lines(text) if not line.is_original]


def _asks_explicitly(line: Line) -> bool:
    return "?" in line.text or "？" in line.text


def _sub_questions(lines: Sequence[Line], value: Any) -> list[tuple[str, bool]]:
    """Return the questions of lines, or phrases in their place, and whether each is listed."""
    questions = [(text, line.listed) for line in lines for text in split_questions(line.text)]
    if not questions:  # some leave out the question marks
        plain = [
            (strip_markup(line.text), line.listed) for line in lines if not _asks_explicitly(line)
        ]
        questions = [(text, listed) for text, listed in plain if is_question(text)]
    in_list = _has_list(value)
    if (questions and not in_list) or (value is not None and not in_list):  # {"error": "..."}
        return questions
    phrases = [line.text for line in lines if line.listed and is_phrase(line.text)]
    return [(strip_markup(text), True) for text in phrases] or questions


def _has_list(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_list, value.values()))
    return isinstance(value, list)


def _usable(texts: Sequence[str], query: str, limit: int, what: str) -> list[str]:
    """Return the different queries among texts, except the query itself. At most ``limit``."""
    queries: dict[str, str] = {}
    for text in texts:
        if is_query(text, query):
            queries.setdefault(_same(text), text)
    queries.pop(_same(query), None)
    if not queries:
        raise ValueError(f"there is no {what} in the answer")
    return list(queries.values())[:limit]


_MARKS = re.compile(r"[\s?.!。,、;:…\"'“”‘’`*_-]+")


def _same(text: str) -> str:
    """Return the form in which near-copies are the same: marks do not count, nor do spaces."""
    return _MARKS.sub(" ", normalize(text)).strip()


def _named(text: str, names: Sequence[str]) -> list[str]:
    """Return the names that occur in a text as words of their own, in its order."""
    positions: dict[str, int] = {}
    text = text.casefold()
    for name in sorted(names, key=len, reverse=True):  # a name may be part of another
        start = r"(?<![a-z0-9_])" if name[0].isascii() else ""
        end = r"(?![a-z0-9_])" if name[-1].isascii() else ""
        pattern = start + re.escape(name.casefold()) + end
        if match := re.search(pattern, text):
            positions[name] = match.start()
            text = re.sub(pattern, lambda match: "\0" * len(match[0]), text)
    return sorted(positions, key=positions.__getitem__)


def _numbered(text: str, names: Sequence[str]) -> list[str]:
    """Return the names whose numbers a short text has, in its order."""
    numbers = [int(number) for number in re.findall(r"(?<![\d.-])\d{1,3}(?![\d.]*\d)", text)]
    short = len(re.findall(r"\w+", text)) <= 3 * len(numbers) + 2
    chosen = [names[number - 1] for number in numbers if short and 1 <= number <= len(names)]
    return list(dict.fromkeys(chosen))


ToolQuestions = list[tuple[str, str]]
"""Pairs of a tool's name and a question for it."""

_QUESTIONS = ("sub_question", "subquestion", "子问题", *QUESTION_KEYS)

_TOOLS = ("tool_name", "tool", "toolname", "name", "source", "工具名", "工具名称", "工具")

# What stands before the first colon or bar: short, and no part of a sentence.
_TOOL_LABEL = re.compile(
    r"""[\s\[【】*_`"']{0,9}(?P<tool>[^:：|\[\]【】?？]{1,60}?)[\s\]】*_`"']{0,9}[:：|]\s{0,9}(?P<question>\S.*)""",
    re.S,
)


def parse_tool_questions(answer: str, tools: Sequence[str]) -> tuple[ToolQuestions, ToolQuestions]:
    """Return the (tool, question) pairs in an answer, and those with an unknown tool.

    JSON of any shape that names both, also between other text, or lines, each with a tool before
    or after its question.

    Raises:
        ValueError: If there are no pairs at all.

    Example:
        >>> parse_tool_questions("1. Rivers: How long is the Nile?", ["rivers", "tea"])
        ([('rivers', 'How long is the Nile?')], [])
    """
    text = clean(answer)
    check_answer(text)
    if is_no_answer(text):
        return [], []
    names = {normalize(tool): tool for tool in tools}
    pairs: dict[tuple[str, str], None] = {}
    unknown: dict[tuple[str, str], None] = {}
    for tool, text_of_question in _pairs(text, names):
        question = strip_markup(text_of_question)
        if re.search(r"\w", question):
            name = names.get(normalize(tool.strip(" \t\"'`*_[]【】()（）")))
            (unknown if name is None else pairs)[name or tool.strip(), question] = None
    if not pairs and not unknown:
        raise ValueError("there is no question for a tool in the answer")
    return list(pairs), list(unknown)


def _pairs(text: str, names: Mapping[str, str]) -> ToolQuestions:
    if "{" in text or "[" in text:
        with suppress(ValueError):
            if pairs := list(_in_json(parse_json(text), names)):
                return pairs
    return [pair for line in text.splitlines() if (pair := _in_line(line, names))]


def _in_json(value: Any, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for item in value:
            yield from _in_json(item, names)
    if not isinstance(value, Mapping):
        return
    question, tool = value_of(value, _QUESTIONS), value_of(value, _TOOLS)
    if isinstance(question, str) and isinstance(tool, str):
        yield tool, question
        return
    for key, item in value.items():
        if normalize(str(key)) in names:  # {"rivers": ["How long is the Nile?"]}
            questions = item if isinstance(item, list) else [item]
            yield from ((str(key), question) for question in questions if isinstance(question, str))
        elif isinstance(item, list | Mapping):
            yield from _in_json(item, names)


def _in_line(line: str, names: Mapping[str, str]) -> tuple[str, str] | None:
    text = split_bullet(line.strip().strip("|"))[0].strip()
    for name in sorted(names.values(), key=len, reverse=True):
        tool = re.escape(name)
        before = re.match(
            rf"(?:[\W_]*{tool}[*_`\"'\])】）]*\s*(?:[:：|,，>→]|-+>?|—)"
            rf"|[\[【(（]\s*{tool}\s*[\])】）])\s*(?=\S)",
            *(text, re.IGNORECASE),
        )
        if before:
            return name, text[before.end() :]
        after = rf"[|>→\[【(（]\s*[`*\"']*{tool}[`*\"'\])】）]*\s*$"
        if match := re.search(after, text, re.IGNORECASE):
            return name, text[: match.start()].rstrip().rstrip("-").rstrip()
    labelled = _TOOL_LABEL.fullmatch(text)
    if labelled and text.rstrip("\"'*_` ").endswith(("?", "？")):
        return labelled["tool"], labelled["question"]
    return None
