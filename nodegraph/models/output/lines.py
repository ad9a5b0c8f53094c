"""Remove labels, bold formatting and quotation marks from the lines of a model's answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .bullets import NUMBER, split_bullet
from .chinese_script import chinese_pattern

_QUESTION_WORDS = (
    r"(?:sub-?)?questions?|quer(?:y|ies)|phrasings?|alternatives?|versions?|variants?|passages?"
    r"|summary|key\ ?words?|answers?|steps?|results?|rewrites?|rewording|paraphrases?"
    r"|reformulations?|search(?:\ terms?)?|(?:action\ |tool\ )?input|outputs?"
)

_VERB = (
    r"(?:\ (?:is|are|becomes?|follows?|to\ (?:ask|search)(?:\ is|\ next)?"
    r"|(?:should|would|could|might|can|will)\ be|(?:i|you|we)\ (?:should|would|could|can)\ ask))?"
)


def label_pattern(words: str, remark: str = "") -> re.Pattern[str]:
    """Compile a pattern for a label that starts a line, such as "**Answer 2:** " or "1. 问题：".

    Args:
        words: The words of the label, as a verbose regular expression.
        remark: A pattern for further words between the number and the colon.

    Example:
        >>> label_pattern("answer").match("**Answer:** Tea").end()
        12
    """
    return chinese_pattern(
        rf"""^\s{{0,9}}(?:[-*+•>\#]{{1,6}}\s{{1,9}})?(?:{NUMBER}\s{{0,9}})?[*_【「\[$]{{0,3}}(?:{words})
        [\s_]?(?:\#?\d{{1,3}}|[一二三四五六七八九十]{{1,3}})?{remark}[*_]{{0,3}}
        (?:\]?\s?[:：]|】|(?<=[\d一二三四五六七八九十])」|\](?=\s?\S)|\s?=(?=\s?["'])|——)[*_]{{0,3}}\s{{0,9}}""",
        re.I | re.M | re.X,
    )


# The stems of "new", "rewritten" and similar words. Other words belong to a title, as in
# "Восточный вопрос: история".
_NEW_ABROAD = r"""(?:um|über|verb|neu|opti|präz|eigen|final|refor|rifor|réé|rees|riscr|améli|mejor
    |miglio|melhor|nouv|nuev|nuov|nova|hers|herf|nieu|переф|улучш|нов|переп|уточ|поиск|ricer
    |búsq|pesq|reche|clar|corr|ausf)[^\W\d_]{0,14}"""

# "Query", "question" and "rewritten question" in other languages.
_ABROAD = rf"""(?:{_NEW_ABROAD}\ )?(?:(?:such)?anfrage|suchbegriffe?|frage|requête|domanda|consulta
    |pregunta|búsqueda|ricerca|pergunta|pesquisa|zoekopdracht|zoekvraag|vraag|запрос|вопрос)
    (?:\ (?:de\ |di\ )?{_NEW_ABROAD})?
    |question\ [^\W\d_]{{3,16}}ée|(?:検索)?(?:クエリ|質問|検索語|検索文)|書き換え(?:後の質問)?
    |검색어|질문|질의|쿼리|검색\ 쿼리"""

LABEL = label_pattern(
    rf"""(?:[^\W_](?:[^\W_]|['-]){{0,14}}[\s_]){{0,3}}(?:{_QUESTION_WORDS}){_VERB}
    |rewritten|corrected|improved|revised|assistant|user|human|did\ you\ mean|next|final
    |{_ABROAD}|助手|用户|输出|结果|检索词?|搜索词?|搜索|行动输入|操作输入|改写前
    |[\u4e00-\u9fff]{{0,6}}(?:问题|问法|查询|改写|关键词|摘要|段落|答案|回答)(?:应该?|结果)?(?:是|为|如下|（[^（）]{{1,10}}）)?
    |[\u4e00-\u9fff]{{0,4}}(?:改写|修改|优化)后|最终(?:版本?|结果)?|终稿|定稿|[\u4e00-\u9fff]{{0,6}}应该?问|[QA问答]""",
    remark=r"(?:(?<=[\d一二三四五六七八九十])\s?[(（][^()（）\n]{1,12}[)）])?",
)
"""A pattern for the label of a text that a prompt requested."""

# A line that consists only of a label: "**Rewritten question**", "Question 2".
_LABEL_LINE = chinese_pattern(
    r"""[\s*_\#>\[【-]{0,9}(?:(?:final|rewritten|improved|clarified|new|next|standalone|search|user)\s)?
    (?:(?:sub-?)?questions?|quer(?:y|ies)|(?:sub-?question|question|query|step|part|(?:re)?phrasing|version|option
      |alternative|variant|variation)\s?\#?\d{1,2}
    |改写后的(?:问题|查询)|(?:子?问题|问法|方案|选项|版本|改写)
      \s?(?:\d{1,2}|[一二三四五六七八九十])?|final\ answer)
    [\s*_\]】:：]{0,9}""",
    re.I | re.X,
)

REMARK = label_pattern(
    r"""[(（]?(?:explanations?|reason(?:ing)?|notes?|rationale|original(?:\ question|\ query)?
    |answers?|A|thoughts?|thinking|changes(?:\ made)?|action|tool(?:\ name)?|observation|analysis
    |confidence|language|intent|why|purpose
    |说明|解释|理由|备注|注|原因|原问题|原查询|答案?|回答|思考|分析|目的|行动|操作|工具)"""
)
"""A pattern for the label of a remark, which is not an item."""

_WRAPPED = re.compile(
    r"""\*\*([^*]+)\*\*|\*([^*]+)\*|"([^"]+)"|'([^']+)'|[“„]([^“”„]+)[“”]|‘([^‘’]+)’|「([^「」]+)」|『([^『』]+)』|`([^`]+)`
    |_([^_]{0,200}[\s?？][^_]{0,200})_
    |«\s?([^«»]+?)\s?»|\[\[([^\[\]]+)\]\]|<<([^<>]+)>>|\\(?:boxed|text)\{([^{}]+|\\text\{[^{}]+\})\}|\${1,2}([^$]+)\${1,2}
    |\\\[([^\[\]]+)\\\]|\[(?:search|query|question|ask)[:：]\s?([^\[\]]+)\]
    |\(([^()]+[?？])\)|（([^（）]+[?？])）|《([^《》]+[?？])》|<([^<>]+[?？])>|\{{1,2}([^{}"]+[?？])\}{1,2}
    |print\((.+)\)|(?:[a-z]{1,20}[._])?(?:search|query|find|ask|retrieve|lookup)(?:[._][a-z]{1,20})?
      (?:\((?:\w{1,20}\s?=\s?)?["']([^"']+)["']\)|\(([^()"']+[?？])\)|\[([^\[\]]+[?？])\])
    |<(?:b|strong|i|em|u|p|q|sub|span|mark|code|h[1-6])(?:\s[^<>]{0,100})?>([^<>]+)
      </(?:b|strong|i|em|u|p|q|sub|span|mark|code|h[1-6])>""",
    re.X | re.I,
)


# A pictogram or an arrow before the text of a line.
_PICTOGRAM = re.compile(
    r"\A\s{0,9}[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff]{1,3}"
    r"\ufe0f?\s{1,4}(?=\S)"
)


def without_pictogram(line: str) -> str:
    """Remove a pictogram from the start of a line.

    Example:
        >>> without_pictogram("💡 Answer: Tea")
        'Answer: Tea'
    """
    return _PICTOGRAM.sub("", line, count=1)


def is_extra(line: str, lines: Sequence[str], label: re.Pattern[str]) -> bool:
    """Return whether a line begins with the label of text that the prompt did not request.

    If the answer announces the line with a colon, or has the same label in its last line, the line
    is part of the answer.

    Args:
        line: The line.
        lines: The lines of the answer before the line.
        label: A pattern for the labels of text that the prompt did not request.

    Example:
        >>> is_extra("Note: be quiet", ["A drink."], label_pattern("note"))
        True
        >>> is_extra("Note: be quiet", ["The sign says:"], label_pattern("note"))
        False
    """
    found = label.match(line)
    if found is None:
        return False
    previous = next((text for text in reversed(lines) if text.strip()), "")
    if previous.rstrip().endswith((":", "：")):
        return False
    before = label.match(previous)
    return before is None or before[0] != found[0]


def without_label(text: str, label: re.Pattern[str] = LABEL) -> str:
    """Remove a label from the start of a text."""
    found = label.match(text)
    if found is None:
        return text
    return text[found.end() :]


def is_label_line(line: str) -> bool:
    """Return whether a line consists only of a label, such as a heading above a question."""
    return _LABEL_LINE.fullmatch(line) is not None


# Matches "**Author:** " and "**Author** – ".
_BOLD_LABEL = re.compile(r"\*\*([^*\n]{1,60}?)(?:[:：]\*\*|\*\*\s?[:：]|\*\*\s[-–—])\s{0,9}(?=\S)")


def without_bold_label(text: str) -> str:
    """Remove bold words before a question.

    If no question follows, a few bold words are treated as part of the text. If there are more bold
    words, they are the text itself, and the words after them are a remark, which is removed.

    Example:
        >>> without_bold_label("**Author:** Who wrote it?")
        'Who wrote it?'
        >>> without_bold_label("**Green tea**: its history")
        'Green tea: its history'
        >>> without_bold_label("**Ways to reset a password** – uses keywords")
        'Ways to reset a password'
    """
    found = _BOLD_LABEL.match(text)
    if found is None:
        return text
    rest = text[found.end() :]
    if re.search(r"[?？][\"'”’」*_)）]{0,3}\s{0,9}(?:[(（–—-].{0,80})?\Z", rest):
        return rest
    if len(_WORD.findall(found[1])) >= _TEXT_WORDS:
        return found[1].strip()
    return f"{found[1].strip()}: {rest}"


_WORD = re.compile(r"[^\W_\u3400-\u9fff]+|[\u3400-\u9fff]{2}")

_TEXT_WORDS = 4  # minimum number of bold words that are a text and not a label


# Matches "`ls -la` output" and "__init__ method".
_CODE_FIRST = re.compile(r"`[^`]+`\s[^`]*\w[^`]*\Z|__\w+__(?!\w)")


# Matches the title in "Who directed *Citizen Kane*?".
_EMPHASIZED = re.compile(r"(?<!\S)\*{1,2}(\w[^*\n]{0,100}?\w)\*{1,2}(?=[\s?？.,'’]|\Z)")


# Matches "class constructor __init__".
_CODE_LAST = re.compile(r"(?<!\S)__\w+?__\Z")


def strip_markup(text: str) -> str:
    """Remove the number, bold formatting, quotation marks and final full stop from an item."""
    text = split_bullet(text)[0].strip(" \t")
    if not _CODE_FIRST.match(text):
        text = _EMPHASIZED.sub(r"\1", _without_emphasis(text))
    if not text.endswith(("...", "…")) and not _CODE_LAST.search(text):
        text = text.rstrip("。,，;；:：*_`")
    text = _single_quote_mark(unwrap(text))
    if re.search(r"[^.\s]{2}\.$", text[-3:]):
        return re.sub(r"(?<=\w)\*{1,2}\Z", "", text[:-1])
    return text


def _without_emphasis(text: str) -> str:
    """Remove bold and italic formatting.

    A single underscore is kept, since a name may begin with it.
    """
    if text.startswith("_") and not text.rstrip(".。?？ ").endswith("_"):
        return text.rstrip(" \t*_`")
    if re.match(r"\*{1,2}\w[^*?？]*\Z", text):
        return text  # Matches "*args".
    if _CODE_LAST.search(text):
        return text.lstrip(" \t*_`")
    return text.strip(" \t*_`")


def _single_quote_mark(text: str) -> str:
    """Remove the quotation marks around a text and a full stop after them, or an unmatched mark."""
    if text[-2:-1] in ('"', "”") and text[-1:] in (".", "。"):
        text = unwrap(text[:-1])
    if len(re.findall('["“”]', text)) != 1:
        return text
    if text[:1] in ('"', "“"):
        return text[1:].lstrip()
    is_mark = text[-1:] in ('"', "”") and not text[-2:-1].isdigit()
    if is_mark:
        return text[:-1].rstrip()
    return text


def unwrap(text: str) -> str:
    """Remove quotation marks or bold formatting around the whole text."""
    while match := _WRAPPED.fullmatch(text := text.strip()):
        text = next(group for group in match.groups() if group is not None)
    return text
