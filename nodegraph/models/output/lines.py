"""Take a model's answer apart into lines, each with its label, or the texts of its JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .cleaning import check_answer, clean, is_opening, json_at, says_none, unopened
from .items import ANSWER, HEADING, SEPARATOR, item_of, strings

LONGEST_ANSWER = 20_000
"""Characters of an answer that are read, thoughts left out; what asks for queries takes a few
hundred."""

KEYS = (
    *("sub_questions", "subquestions", "sub-questions", "questions", "queries", "phrasings"),
    *("rewritten_question", "rewritten_query", "rewritten", "rewrite", "standalone_question"),
    *("sub_question", "subquestion", "question", "query", "text", "passage", "answer", "q"),
    *("子问题", "问题", "改写后的问题", "改写", "查询", "检索词", "段落", "答案"),
)

# "Rewritten question:", "子问题 1：", "**Query 2**:"
_LABEL = re.compile(
    r"""\s*(?:[*_【\[#]{1,3}\s*)?(?P<kind>
      (?:(?:the|my|your|rewritten|rephrased|revised|improved|clear(?:er)?|standalone|reformulated
          |search|alternative|sub|original|initial|final|new|user|input|follow[- ]?up
          |hypothetical)[-\s]*)*
        (?:questions?|quer(?:y|ies)|step|alternatives?|phrasings?|versions?|variants?|variations?|rewrit(?:e|ing)s?
          |passages?|paragraphs?|keywords?|output|result|route)
        (?:\s+(?:is|are|would\ be|could\ be))?
      |(?:(?:改写|重写|优化|修改|润色|分解|拆分)(?:之?后)?的?|子|检索|搜索|查询|替代|新的?|原始?|用户|等价|相似
          |同义|独立|假设|输出|最终)*的?
        (?:问题|查询|问句|问法|检索词|搜索词|关键词|步骤|语句|检索式|说法|表述|改写|版本|段落|文本|文档|结果|输出)
        (?:是|为|如下|如)?
      |改写[后为成]|答|[QＱ问]|(?:my\ |the\ )?final\ answer|最终答案
    )(?:\s*\#)?(?:\s*(?:\d{1,2}|[一二三四五六七八九十]))?
    (?:\s*[*_】\]]{1,3}\s*[:：]|\s*[:：]|\s*】)(?:\s*[*_]{1,3})?\s*""",
    re.I | re.X,
)

_DECORATED = re.compile(r"\s*(?:#{1,6}\s|\*\*|【|\[)")

_ORDER = re.compile(
    r"""\s*(?:<[a-z_-]{1,20}>\s*)*\s*(?:\|\s*)?(?:\d{1,2}\s*\|\s*)?
    (?:(?:first|second|third|fourth|fifth|then|next|finally|lastly)(?:ly)?[,:]\s+
      |(?:首先|其次|然后|接着|再次|最后|第[一二三四五六七八九十](?:步)?)[，,：:]\s*|[；;，,、]\s*
      |[a-h][)）]\s*|(?:and|以及)\s+)?""",
    re.I | re.X,
)

_ASIDE = re.compile(r"(?<=[?？])[\"'”’」』*_`]*\s*[(（][^()（）]*[)）]\Z")

_ORIGINAL = re.compile(r"original|initial|user|input|follow|原|用户", re.I)

_REMARK = re.compile(
    r"""\s*[*_【\[(（]{0,3}(?:explanations?|reason(?:s|ing)?|notes?|rationale|analysis|justification
      |comments?|changes(?:\ made)?|steps?|why|说明|解释|理由|备注|注意?|分析|原因|修改说明|思路)
    (?:\s*[*_】\]]{1,3})?\s*[:：]""",
    re.I | re.X,
)

_CLOSING_TAG = re.compile(r"</[a-z_-]{1,20}>\Z", re.I)

_SPACES = re.compile(r"[^\S\n]{3,}")

_LINE_ENDS = re.compile(r"\n{3,}")


class Line(NamedTuple):
    """Hold what one line of an answer says.

    Attributes:
        kind: Its label in the model's words, "rewritten question"; None where it has none.
        text: What stands behind label, bullet and number.
        listed: Whether it is an item of a list.
    """

    kind: str | None
    text: str
    listed: bool

    @property
    def is_original(self) -> bool:
        """Whether the label says that it is the user's own question."""
        return self.kind is not None and _ORIGINAL.search(self.kind) is not None


def read_answer(answer: str) -> str:
    """Return an answer without thoughts and phrases, as far as it is read.

    Raises:
        ValueError: If it is empty, or a refusal.
    """
    text = shortened(answer)
    check_answer("" if is_opening(text) else text)
    return text


def shortened(answer: str) -> str:
    """Return a cleaned answer as far as it is read, long stretches of blanks made short."""
    return _LINE_ENDS.sub("\n\n", _SPACES.sub("  ", clean(answer)))[:LONGEST_ANSWER]


def lines_of(text: str) -> Iterator[Line]:
    """Yield the lines of an answer that say something; of JSON its texts.

    Headings, remarks, answers and phrases that lead over are left out.

    Raises:
        ValueError: If it begins like JSON and is none.

    Example:
        >>> [tuple(line) for line in lines_of("Note: two of them.\\n1. **Query**: How long is it?")]
        [('Query', 'How long is it?', True)]
    """
    value = json_in(text)
    if value is None and re.match(r"[\[{]\s*[\"'\[{]", text):
        raise ValueError("the answer begins like JSON and is none")
    if value is not None:
        texts = "\n".join(strings(value, KEYS)).split("\n")
        yield from (Line(None, each, True) for each in texts if re.search(r"\w", each))
        return
    for line in text.split("\n"):
        said = _said(line)
        if said is not None:
            yield said


def json_in(text: str) -> Any:
    """Return the JSON that an answer is, or has in it; None where there is none."""
    found = re.search(r"^[ \t]*(?:\[\s*[\"'{]|\{\s*[\"'])", text, re.M)
    return None if found is None else json_at(text, found.end() - len(found[0].lstrip()))


def unlabelled_text(text: str) -> str:
    """Return a text without the label before it ("Passage:", "答案：")."""
    for label in (_LABEL, ANSWER, HEADING):
        if (found := label.match(text)) and found.end():
            text = text[found.end() :]
    return text


def unordered(text: str) -> str:
    """Return a text without what says its place among others: "First,", "b)", "以及"."""
    return _ORDER.sub("", text, count=1)


def _said(line: str) -> Line | None:
    """Return what one line says, None where that is nothing."""
    if _REMARK.match(line) or SEPARATOR.fullmatch(line):
        return None
    if _DECORATED.match(line) and _LABEL.fullmatch(f"{line.strip()}:"):
        return None
    line, listed = item_of(unopened(_unclosed(unordered(line))))
    label = _LABEL.match(line)
    kind = None
    if label is not None:
        kind, line = label["kind"], line[label.end() :]
        # "Sub-question 2: ..." is as good as a number.
        listed = listed or re.search(r"\d", label[0]) is not None
        line = re.sub(r"\*{2,}\Z", "", line.rstrip()) if line.count("**") % 2 else line
    elif (heading := HEADING.match(line + "\n")) and heading.end():
        line = line[heading.end() :]
    if (told := ANSWER.match(line)) and not line.rstrip().endswith(("?", "？")):
        return None
    line = unordered(line)
    line = _ASIDE.sub("", (line[told.end() :] if told else line).rstrip())
    if _REMARK.match(line) or says_none(line):
        return None
    if not re.search(r"\w", line) or line.rstrip(" *").endswith((":", "：")):
        return None
    return Line(kind, line.strip(), listed)


def _unclosed(line: str) -> str:
    """Return a line without closing tags, or a table's line, at its end."""
    line = line.rstrip()
    if line.endswith("|"):
        return line[:-1].rstrip()
    while tag := _CLOSING_TAG.search(line[-23:]):
        line = line[: -len(tag[0])].rstrip()
    return line
