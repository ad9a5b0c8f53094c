"""Parse questions for tools from an answer that consists of JSON, tags, tables or lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .answer_text import read_json
from .bullets import split_bullet, with_bullets
from .chinese_script import chinese_pattern
from .frames import without_frames
from .json_values import TEXT_KEYS, objects_in, texts_in, value_of
from .lines import label_pattern, strip_markup, unwrap, without_pictogram
from .queries import usable_signs
from .questions import is_query, is_question, split_questions
from .tables import read_table, text_column
from .tags import check_no_tag
from .tool_names import ToolNames

ToolQuestions = list[tuple[str, str]]
"""Pairs of the name of a tool and a question for this tool."""

_TOOL_KEYS = (
    "tool",
    "tool_name",
    "name",
    "source",
    "engine",
    "retriever",
    "index",
    "datasource",
    "data_source",
    "action",
    "function",
    "工具",
    "工具名",
    "工具名称",
    "数据源",
    "来源",
    "tools",
    "tool_names",
    "sources",
)

_QUESTION_KEYS = (
    *TEXT_KEYS[5:],
    "input",
    "sub_questions",
    "questions",
    "queries",
    "action_input",
    "q",
)

_NESTED_KEYS = ("arguments", "parameters", "args", "kwargs", "function")

_TOOL_LABEL = label_pattern(
    r"(?:tool|source|engine|retriever|index|data[ _]?source|action|工具|数据源|来源"
    r"|quelle|werkzeug|fuente|herramienta|outil|strumento|fonte|ferramenta|bron|ツール|도구)"
    r"(?:[ _]name|名称?)?|name"
)

_QUESTION_LABEL = label_pattern(
    r"(?:sub[-_ ]?|sous-)?questions?|(?:teil)?frage|(?:sub)?pregunta|(?:sotto)?domanda"
    r"|(?:sub)?pergunta|(?:deel)?vraag|質問|질문"
    r"|quer(?:y|ies)|(?:action\ )?input|ask|Q|(?:子)?问题?|查询|提问"
)

# Matches "tool=plays" and "question = ".
_ASSIGNMENT = re.compile(r"\b(tool(?:_name)?|(?:sub_?)?question|query|input)\s?=\s?(?=[\"'\w])")

_QUOTED_QUESTION = re.compile(
    r"[(（\[]?\s?(?:\w{1,20}\s?[:=]\s?)?[\"'“「](.*)[\"'”」]\s?[)）\]]?[,;，；]?"
    r"|[(（\[]([^()（）\[\]]+)[)）\]]"
)

_UNKNOWN_TOOL = re.compile(
    r"[\[【*`\"']{0,3}([^:：?？\]】]{1,60}?)[\]】*`\"']{0,3}(?:\s?[:：]\s?|(?<=[\]】])\s?)(\S.*)"
)

_MAX_LINES = 2_000


def parse_tool_questions(
    answer: str, tools: Sequence[str], query: str = ""
) -> tuple[ToolQuestions, ToolQuestions]:
    """Return the (tool, question) pairs in an answer, and those with an unknown tool separately.

    The answer may be JSON, tags or a table in which each object or row contains a tool and a
    question. It may also consist of lines in which the tool comes before or after the question.

    Args:
        answer: The answer of the model.
        tools: The names of the tools.
        query: The user's question.

    Raises:
        ValueError: If the answer does not contain any pairs.

    Example:
        >>> parse_tool_questions("1. Rivers: How long is the Nile?", ["rivers", "tea"])
        ([('rivers', 'How long is the Nile?')], [])
    """
    names = ToolNames.of(tools)
    own = usable_signs(answer, query)
    text, value = read_json(_with_plain_calls(own.text, names), TEXT_KEYS, query)
    if not text:
        return [], []
    if value is None:
        pairs = _pairs_in_text(text, names)
    else:
        pairs = [*_pairs_in_value(value, names)]
        pairs = pairs or _pairs_in_lines([*texts_in(value, _QUESTION_KEYS)], names)
    cleaned: dict[tuple[str, str], None] = {}
    for tool, question in pairs:
        check_no_tag(question, query)
        stripped = strip_markup(without_frames(question.strip(), query))
        if is_query(stripped, query):
            cleaned[own.restored(tool.strip()), own.restored(stripped)] = None
    if not cleaned:
        raise ValueError("the answer has no question for a tool")
    known: ToolQuestions = []
    unknown: ToolQuestions = []
    for tool, question in cleaned:
        name = names.known(tool)
        if name is None:
            unknown.append((tool, question))
        else:
            known.append((name, question))
    return [*dict.fromkeys(known)], unknown


# Matches "plays({"query": "..."})" and "Action Input: {"query": "..."}".
_OBJECT_BEHIND = re.compile(
    r"^(?P<before>[^\n{\[\"]{1,80}?)\(?\s?\{\s?\"\w{1,20}\"\s?:\s?"
    r"(?P<text>\"(?:[^\"\\\n]|\\.){1,2000}\")\s?\}\s?\)?$",
    re.M,
)

_ONE_CALL = r"([\w.-]{1,60})\((?:\w{1,20}\s?=\s?)?(\"[^\"\n]{1,400}\"|'[^'\n]{1,400}')\)"

_CALL = re.compile(_ONE_CALL)

# Matches '[plays(query="..."), people(query="...")]', the calls that Llama models write.
_CALLS = re.compile(rf"\[\s?(?:{_ONE_CALL}[,\s]{{0,4}}){{1,20}}\]")

_OPEN_TAG = re.compile(r"^(\s{0,9})<([^<>/\n]{1,60})>\s(?=\S)", re.M)


def _with_plain_calls(answer: str, names: ToolNames) -> str:
    """Replace calls of tools in an answer with the tool and the question as plain text."""

    def plain(found: re.Match[str]) -> str:
        before = found["before"].strip()
        is_tool = names.known(before) is not None
        if not is_tool and not _QUESTION_LABEL.match(before):
            return found[0]
        return f"{before}{':' if is_tool else ''} {found['text']}"

    def plain_tag(found: re.Match[str]) -> str:
        return f"{found[1]}{found[2]}: " if names.known(found[2]) else found[0]

    if _CALLS.fullmatch(answer.strip()):
        return "\n".join(f"{name}: {text}" for name, text in _CALL.findall(answer))
    text = _OBJECT_BEHIND.sub(plain, answer)
    if "</" in text:
        return text
    return _OPEN_TAG.sub(plain_tag, text)


def _pairs_in_value(value: Any, names: ToolNames) -> Iterator[tuple[str, str]]:
    """Yield the pairs in JSON or tags.

    A pair is an object with a tool and a question, or a question under the name of a tool.
    """
    for record in objects_in(value):
        parallel = _parallel_lists(record, names)
        if parallel:
            yield from parallel
            continue
        tools = _tools_of(record, names)
        question = _question_of(record, tools)
        if tools and question is not None:
            for text in texts_in(question, _QUESTION_KEYS):
                yield from ((tool, text) for tool in tools)
            continue
        for key, item in record.items():
            if names.known(key) is not None:
                for text in texts_in(item, _QUESTION_KEYS):
                    yield key, text
            elif key not in _TOOL_KEYS and names.known(item) and is_query(str(key)):
                yield item, str(key)
    if isinstance(value, list):
        yield from _pairs_in_list(value, names)


def _parallel_lists(record: Mapping[Any, Any], names: ToolNames) -> list[tuple[str, str]]:
    """Return the pairs in an object with a list of tools and an equally long list of questions."""
    tools = value_of(record, _TOOL_KEYS)
    questions = value_of(record, _QUESTION_KEYS)
    if not isinstance(tools, list) or not isinstance(questions, list):
        return []
    if not 1 < len(tools) == len(questions):
        return []
    if not all(isinstance(question, str) for question in questions):
        return []
    if any(names.known(tool) is None for tool in tools):
        return []
    return [*zip(tools, questions, strict=True)]


def _tools_of(record: Mapping[Any, Any], names: ToolNames) -> list[str]:
    """Return the known tools in an object, or its first tool if all are unknown."""
    written: list[str] = []
    for key in _TOOL_KEYS:
        value = value_of(record, (key,))
        values = value if isinstance(value, list) else [value]
        values = [name.get("name") if isinstance(name, Mapping) else name for name in values]
        written += [name for name in values if isinstance(name, str)]
    known = [name for name in written if names.known(name) is not None]
    return [*dict.fromkeys(known)] or written[:1]


def _question_of(record: Mapping[Any, Any], tools: Sequence[str]) -> Any:
    """Return the questions in an object, or None if it contains no question."""
    question = value_of(record, _QUESTION_KEYS)
    if question is None:
        question = value_of(record, _NESTED_KEYS)
    if question is None:
        text = value_of(record, _TOOL_KEYS)
        is_text = isinstance(text, str) and text not in tools and is_question(text)
        if is_text:
            question = text
    if question is None and tools:
        others = [
            text
            for key, text in record.items()
            if isinstance(text, str) and text not in tools and key not in _TOOL_KEYS
        ]
        asked = [text for text in others if is_question(text)]
        if len(asked) == 1:
            question = asked[0]
    return question


def _pairs_in_list(value: Sequence[Any], names: ToolNames) -> Iterator[tuple[str, str]]:
    """Yield the pairs in a list.

    Its elements are texts that mention a tool, or two-element lists.
    """
    for item in value:
        if isinstance(item, str):
            yield from _pairs_in_text(item, names)
        elif isinstance(item, list) and [type(part) for part in item] == [str, str]:
            tools = [text for text in item if names.known(text) is not None]
            questions = [text for text in item if names.known(text) is None]
            if len(tools) == 1:
                yield tools[0], questions[0]


def _pairs_in_text(text: str, names: ToolNames) -> list[tuple[str, str]]:
    lines = text.split("\n")[:_MAX_LINES]
    rows = read_table(lines)
    if rows is not None and (pairs := _pairs_in_rows(rows, names)):
        return pairs
    return _pairs_in_lines(lines, names)


def _pairs_in_rows(rows: Sequence[dict[str, str]], names: ToolNames) -> list[tuple[str, str]]:
    """Return the pairs in a table.

    In each row, one cell contains a tool and another the question.
    """
    pairs: list[tuple[str, str]] = []
    for row in rows:
        tools = [cell for cell in row.values() if names.known(cell) is not None]
        other = {column: cell for column, cell in row.items() if cell not in tools}
        questions = text_column([other])
        if tools and questions:
            pairs.append((tools[0], questions[0]))
    return pairs


def _pairs_in_lines(lines: Sequence[str], names: ToolNames) -> list[tuple[str, str]]:
    """Return the pairs in lines. A tool on a separate line applies to the questions below it."""
    pairs: list[tuple[str, str]] = []
    heading = ""
    waiting = ""  # a question that may be followed by its tool
    for line in _single_lines(lines, names):
        tool, question = _read_line(split_bullet(line)[0], names)
        if tool and question:
            pairs.append((tool, question))
            heading = ""
        elif tool and waiting:
            pairs.append((tool, waiting))
            waiting = ""
        elif tool:
            heading = tool
        elif question and heading:
            pairs.append((heading, question))
        elif question:
            waiting = question
    return pairs


def _single_lines(lines: Sequence[str], names: ToolNames) -> Iterator[str]:
    """Split lines so that each of them contains only one tool."""
    for line in with_bullets(lines):
        yield from names.within.split(line)


_BEFORE_QUESTION = chinese_pattern(r"[,，;；|｜]\s?(?=\S)|\s(?=(?:问题|子问题|question)[:：])")


def _read_line(line: str, names: ToolNames) -> tuple[str, str]:
    """Return the tool and the question in a line. If either is missing, it is an empty string."""
    text = without_pictogram(line).strip()
    text = _ASSIGNMENT.sub(r"\1: ", text)
    label = _TOOL_LABEL.match(text)
    if label is not None:
        rest = _BEFORE_QUESTION.split(text[label.end() :], maxsplit=1)
        question = _without(rest[1], _QUESTION_LABEL) if len(rest) > 1 else ""
        is_name = names.known(rest[0]) is not None
        if len(rest) == 1 and not is_name:
            return _by_name(rest[0], names) or (rest[0].strip(), "")
        return rest[0].strip(), question
    label = _QUESTION_LABEL.match(text)
    if label is not None:
        content = text[label.end() :].strip()
        return _by_name(content, names) or ("", content)
    found = _by_name(text, names)
    if found is not None:
        return found
    unknown = _UNKNOWN_TOOL.fullmatch(text)
    if unknown is not None and unknown[2].endswith(("?", "？")):
        return unknown[1].strip(), unknown[2]
    questions = split_questions(unwrap(text))
    if questions:
        return "", questions[0]
    if is_question(text):
        return "", text
    return "", ""


def _by_name(text: str, names: ToolNames) -> tuple[str, str] | None:
    """Return the tool named at the start or end of a text, and the remaining text, or None."""
    found = names.start.match(text)
    if found is not None:
        rest = text[found.end() :].strip()
        rest = _without(rest, _QUESTION_LABEL) if re.search(r"\w", rest) else ""
        quoted = _QUOTED_QUESTION.fullmatch(rest)
        if quoted is not None:
            rest = quoted[1] or quoted[2]
        return found["tool"], _without_signs(rest)
    found = names.end.fullmatch(text)
    if found is not None and is_query(found["question"]):
        return found["tool"], _without(found["question"], _QUESTION_LABEL)
    return None


def _without_signs(question: str) -> str:
    """Remove further separators before a question, and a remark or bracket after it."""
    text = question.lstrip(":：|>｜ ")
    text = re.sub(r"\A\w{1,12}\s?=\s?(?=\S)", "", text)
    text = re.sub(r"(?<=[?？])\s?[(（][^()（）?？]{1,100}[)）]\s{0,9}\Z", "", text)
    if "(" in text or "（" in text:
        return text
    return text.rstrip(")）")


def _without(text: str, label: re.Pattern[str]) -> str:
    found = label.match(text)
    if found is not None:
        text = text[found.end() :]
    return text.strip()
