"""Split a model's answer into lines, and strip bullets, numbers, labels, bold and quotes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .json_values import is_no_answer, json_or_words, strip_lead, texts_in

QUESTION_KEYS = ("question", "q", "query", "问题", "问", "提问")

ANSWER_KEYS = ("answer", "a", "response", "reply", "答案", "答", "回答")

TEXT_KEYS = (
    *("sub_questions", "subquestions", "questions", "queries", "phrasings"),
    *("rewritten_question", "rewritten_query", "rewritten", "rewrite", "standalone_question"),
    *("sub_question", "subquestion", "question", "query", "text", "passage", "answer", "q"),
    *("子问题", "问题", "改写后的问题", "改写", "查询", "检索词", "段落", "答案"),
)

_MAX_LAYERS = 12  # of quotes and bold around an item

# Spaces may stand in many places of a pattern, and there may be any number of them in an answer:
# without a limit each way to divide them among the places would be tried.
_GAP = r"\s{0,9}"

_NUMERAL = r"(?:\d{1,3}|[一二三四五六七八九十]{1,3})"

BULLET = re.compile(
    r"""\s{0,9}(?:>\s{0,9})?(?:\#{1,6}\s+)?(?:[-*+•·●○◦▪–—]\s+|[•·●○◦▪]\s{0,9})?
    (?:[*_]{2})?
    (?:(?:\(?\d{1,3}\s{0,9}(?:[.)]\s{0,9}(?!\d)|[、）]\s{0,9}|[:：]\s{0,9}(?!\d))|（\d{1,3}）\s{0,9}|[①-⑳]\s{0,9}
      |[一二三四五六七八九十]{1,3}[、.]\s{0,9}|第[一二三四五六七八九十\d]{1,3}[个题]?[、:：]\s{0,9}))?""",
    re.X,
)

SEPARATOR = re.compile(
    rf"""\s{{0,9}}(?:[-=*_~]{{3,}}
    |(?:\#{{1,6}}\s{{0,9}})?[*_]{{0,2}}[(（]?
      (?:(?:q\ ?&\ ?a|qa|pair|问答对?|第)\s{{0,9}}(?:pair\s{{0,9}})?)?
      \#?{_NUMERAL}(?:\s{{0,9}}(?:[组个对条]|题))?(?:\s{{0,9}}问答对?)?
      [*_]{{0,2}}[.)、）:：]?[*_]{{0,2}})\s{{0,9}}""",
    re.I | re.X,
)

HEADING = re.compile(
    r"""\s{0,9}(?:\#{1,6}\s{0,9})?[*_]{0,2}[【\[]?
    (?:(?:main|key|important|short|brief|extracted|the)\ )?
    (?:summary|abstract|key\ ?words?|key\ ?phrases?|questions?|q\ ?&\ ?a(?:\ pairs?)?
      |question[-\ ]and[-\ ]answer\ pairs?|question-answer\ pairs?
      |(?:内容|本文|全文|文本)?(?:摘要|总结|概要|概括)(?:如下)?|关键词|关键字|关键词列表|问题|问题列表|问答对?)
    (?:\ ?[(（][^)）\n]{0,20}[)）])?[】\]]?[*_]{0,2}\s{0,9}(?:[:：][*_]{0,2}|(?=\n))\s{0,9}""",
    re.I | re.X,
)


def label_pattern(words: str, end: str = "[:：]") -> re.Pattern[str]:
    """Compile the pattern of a label at the start of a line: "**Answer 2:** ", "- 1. 问题：".

    Args:
        words: The label's words, as a verbose regular expression.
        end: What stands between the label and its text.

    Example:
        >>> label_pattern("answer").match("**Answer:** Tea").end()
        12
    """
    return re.compile(
        rf"""[\s>#*_•+-]*(?:\d{{1,3}}{_GAP}[.)、）]{_GAP})?[*_【\[]{{0,3}}{_GAP}(?:{words})
        (?:{_GAP}[-#])?(?:{_GAP}{_NUMERAL})?(?:{_GAP}[*_】\]]{{1,3}})?{_GAP}{end}
        (?:{_GAP}[*_】\]]{{1,3}})?{_GAP}""",
        re.I | re.X,
    )


# A single letter needs its colon; a word may stand alone on its line.
_COLON_FOLLOWS = r"(?=[^:：\n]{0,12}[:：])"

QUESTION_LABEL = label_pattern(
    rf"questions?|问题|提问|问句|问|[QＱ]{_COLON_FOLLOWS}", "(?:[:：]|$)"
)

ANSWER_LABEL = label_pattern(rf"answers?|答案|回答|解答|答|[AＡ]{_COLON_FOLLOWS}", "(?:[:：]|$)")

# "Rewritten question:", "子问题 1：", "**Query 2**:", "【段落】"
_TEXT_LABEL = label_pattern(
    r"""(?P<kind>
      (?:(?:the|my|your|rewritten|rephrased|revised|improved|clear(?:er)?|standalone|reformulated
          |search|alternative|sub|smaller|next|original|initial|final|new|user|input|follow[-\ ]?up
          |hypothetical)[-\s]*)*
        (?:questions?|quer(?:y|ies)|step|alternatives?|phrasings?|versions?|variants?|variations?
          |rewrit(?:e|ing)s?|passages?|paragraphs?|keywords?|output|result|route)
        (?:\s+(?:is|are|would\ be|could\ be))?
      |(?:(?:改写|重写|优化|修改|润色|分解|拆分)(?:之?后)?的?|下一个?|小|子|检索|搜索|查询|替代|新的?|原始?|用户|等价|相似
          |同义|独立|假设|输出|最终)*的?
        (?:问题|查询|问句|问法|检索词|搜索词|关键词|步骤|语句|检索式|说法|表述|改写|版本|段落|文本|文档|结果|输出)
        (?:是|为|如下|如)?
      |下一问|改写[后为成]|答|[QＱ问]|(?:my\ |the\ )?final\ answer|最终答案)""",
    "(?:[:：]|(?<=】))",
)

_REMARK_LABEL = label_pattern(
    r"""[(（]?(?:explanations?|reason(?:s|ing)?|notes?|rationale|analysis|justification|comments?
    |changes(?:\ made)?|steps?(?!\s*[\d\#])|why|说明|解释|理由|备注|注意?|分析|原因
    |修改说明|思路)"""
)

_DECORATION = re.compile(r"\s*(?:#{1,6}\s|\*\*|【|\[)")

_ORDINAL = re.compile(
    r"""\s{0,9}(?:<[a-z_-]{1,20}>\s{0,9})*\s{0,9}(?:\|\s{0,9})?(?:\d{1,2}\s{0,9}\|\s{0,9})?
    (?:(?:first|second|third|fourth|fifth|then|next|finally|lastly)(?:ly)?[,:]\s+
      |(?:首先|其次|然后|接着|再次|最后|第[一二三四五六七八九十](?:步)?)[，,：:]\s{0,9}|[；;，,、]\s{0,9}
      |[a-h][)）]\s{0,9}|(?:and|以及)\s+)?""",
    re.I | re.X,
)

_ASIDE = re.compile(r"(?<=[?？])[\"'”’」』*_`]*\s*[(（][^()（）]*[)）]\Z")

_ORIGINAL = re.compile(r"original|initial|user|input|follow|原|用户", re.I)

_CLOSING_TAG = re.compile(r"</[a-z_-]{1,20}>\Z", re.I)

_CLOSING_QUOTE = {'"': '"', "'": "'", "“": "”", "‘": "’", "「": "」", "『": "』", "`": "`"}


class Line(NamedTuple):
    """Hold a line of an answer.

    Attributes:
        kind: Its label in the model's words, "rewritten question". None where it has none.
        text: The text behind label, bullet and number.
        listed: Whether it is an item of a list.
    """

    kind: str | None
    text: str
    listed: bool

    @property
    def is_original(self) -> bool:
        """Whether the label marks it as the user's own question."""
        return self.kind is not None and _ORIGINAL.search(self.kind) is not None


def parse_lines(text: str) -> Iterator[Line]:
    """Yield the lines of a cleaned answer that have content. For JSON its texts.

    Headings, remarks and polite phrases are left out.

    Raises:
        ValueError: If it begins like JSON and cannot be read.

    Example:
        >>> answer = "Note: two of them.\\n1. **Query**: How long is it?"
        >>> [tuple(line) for line in parse_lines(answer)]
        [('Query', 'How long is it?', True)]
    """
    if (value := json_or_words(text)) is not None:
        texts = "\n".join(texts_in(value, TEXT_KEYS)).split("\n")
        yield from (Line(None, line, True) for line in texts if re.search(r"\w", line))
        return
    yield from filter(None, map(_parse_line, text.split("\n")))


def _parse_line(line: str) -> Line | None:
    """Parse one line. None where it has no content."""
    if _REMARK_LABEL.match(line) or SEPARATOR.fullmatch(line):
        return None
    if _DECORATION.match(line) and _TEXT_LABEL.fullmatch(f"{line.strip()}:"):
        return None
    line, listed = split_bullet(strip_lead(_strip_closing_tags(strip_ordinal(line))))
    kind = None
    if label := _TEXT_LABEL.match(line):
        kind, line = label["kind"], line[label.end() :].rstrip()
        # "Sub-question 2: ..." is as good as a number.
        listed = listed or re.search(r"\d", label[0]) is not None
        if line.count("**") % 2 and line.endswith("**"):
            line = line.rstrip("*")
    elif heading := HEADING.match(line + "\n"):
        line = line[heading.end() :]
    if answer := ANSWER_LABEL.match(line):
        if not line.rstrip().endswith(("?", "？")):
            return None
        line = line[answer.end() :]
    line = _ASIDE.sub("", strip_ordinal(line).rstrip())
    if _REMARK_LABEL.match(line) or is_no_answer(line):
        return None
    if not re.search(r"\w", line) or line.rstrip(" *").endswith((":", "：")):
        return None
    return Line(kind, line.strip(), listed)


def _strip_closing_tags(line: str) -> str:
    """Return a line without closing tags, or the bar of a table, at its end."""
    line = line.rstrip()
    if line.endswith("|"):
        return line[:-1].rstrip()
    end = len(line)
    while tag := _CLOSING_TAG.search(line, max(0, end - 23), end):
        end = tag.start()
        while end and line[end - 1].isspace():
            end -= 1
    return line[:end]


_STAR = re.compile(r"\s*\*\s")


def split_bullet(line: str) -> tuple[str, bool]:
    """Return a line without its bullet or number, and whether it had one."""
    bullet = BULLET.match(line)
    sign = bullet[0].strip(" \t*_") or _STAR.match(line) if bullet else None
    return (line[len(bullet[0].rstrip("*_")) :], True) if bullet and sign else (line, False)


def strip_question_label(line: str) -> str:
    """Return a question without its label ("Question 1:"), bullet or number."""
    label = QUESTION_LABEL.match(line) or BULLET.match(line)
    return line[label.end() if label else 0 :].strip().strip("*_").strip()


def strip_label(text: str) -> str:
    """Return a text without the label before it ("Passage:", "答案：")."""
    for pattern in (_TEXT_LABEL, ANSWER_LABEL, HEADING):
        if label := pattern.match(text):
            text = text[label.end() :]
    return text


def strip_ordinal(text: str) -> str:
    """Return a text without a word for its place in a list: "First,", "b)", "以及"."""
    return _ORDINAL.sub("", text, count=1)


def strip_markup(text: str) -> str:
    """Return an item without its number, bold, quotes and full stop."""
    bullet = BULLET.match(text)
    text = text[bullet.end() :] if bullet else text
    for _ in range(_MAX_LAYERS):
        before = text
        text = unwrap(text.strip().strip("*_`").strip())
        text = text.rstrip("。,，;；:：").rstrip() if not text.endswith(("...", "…")) else text
        text = text[:-1].rstrip() if re.search(r"[^.\s]{2}\.$", text[-3:]) else text
        if text == before:
            break
    return text


def unwrap(text: str) -> str:
    """Return a text without the quotes or bold around all of it."""
    text = text.strip()
    if len(text) > 4 and text.startswith("**") and text.endswith("**") and "**" not in text[2:-2]:
        text = text[2:-2].strip()
    close = _CLOSING_QUOTE.get(text[:1])
    inner = text[1:-1]
    if close and len(text) > 2 and text.endswith(close) and not {text[0], close} & set(inner):
        return inner.strip()
    return text


def unique(texts: Iterable[str]) -> list[str]:
    """Return texts in order, without those that equal an earlier one but for case and spaces."""
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(normalize(text), text)
    return list(first.values())


def normalize(text: str) -> str:
    """Return a text in the form that is compared: width, case and spaces do not count."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
