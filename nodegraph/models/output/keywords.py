"""Parse the keywords that a model extracted from a passage."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from .answer_text import read_json, unique
from .bullets import indent_of, split_bullet
from .chinese_script import chinese_pattern
from .items import read_items
from .json_values import texts_in, value_of
from .lines import label_pattern, strip_markup, without_pictogram
from .missing_passage import check_passage_given
from .tables import named_column, read_table

_MAX_KEYWORD = 60  # maximum number of characters

_MAX_KEYWORD_WORDS = 9

_WORD = re.compile(r"\w")

_KEYS = tuple(
    """keywords keyword key_words keyphrases key_phrases key_terms terms tags topics phrases
    entities name term word tag phrase topic entity keyphrase key_term label text hashtags
    关键词 关键字 词语 词 标签 主题词 名称""".split()
)

_NAMES = (
    r"(?:key\ ?-?(?:words?|terms?|phrases?|concepts?|topics?)|terms?|tags?|hashtags?|topics?"
    r"|phrases?|entit(?:y|ies)|关键(?:[词字语]|短语|术语)|标签|主题词|核心词|术语|词语)"
)

_KEYWORD_COLUMN = chinese_pattern(
    rf"\W*(?:(?:main|top|extracted|the)\ )?(?:{_NAMES}|关键[词字]列表)\W*", re.I | re.X
)

# Matches "Keywords: ", "The five keywords are: " and "这段文字的关键词是：".
_LEAD = chinese_pattern(
    rf"""\A[\s*_\#>【\[-]{{0,9}}(?:[^\n:：,，;；、|]{{0,60}}?\b|[^\n:：,，;；、|]{{0,30}}?)(?:{_NAMES})
    (?:[^\n:：,，;；、|]{{0,50}})?(?:[:：]|】\s?[:：]?|\s[-–—]\s)[*_]{{0,3}}\s{{0,9}}(?=\S)""",
    re.I | re.X,
)

_ARE_LEAD = chinese_pattern(
    r"\A(?:the|my)\ (?:[\w-]{1,12}\ ){0,3}(?:keywords|key\ (?:terms|phrases|words))"
    r"(?:\ (?:of|in|from)\ (?:the|this)\ \w{1,12})?\ (?:are|include)\ "
    r"|\A[^\n:：,，、]{0,20}(?:关键词|关键字)(?:有|包括|分别[是为]|[是为])[:：]?\s?",
    re.I | re.X,
)

# A label of text that the prompt did not request.
_REMARK = label_pattern(
    r"explanations?|definitions?|descriptions?|meaning|reason(?:ing)?|relevance|context|notes?|why"
    r"|importance|significance|example|score|type|category|说明|解释|含义|定义|描述|理由|相关性"
    r"|重要性|备注|注|类型|类别|分数|出处"
)

_COMMAS = re.compile(r"[，;；\n]|,(?!\d)|(?<!\d),")

# Separators between keywords in a line of text.
_SEPARATORS = re.compile(r"[，、;；\n\t|｜•·‧●▪◆]|,(?!\d)|(?<!\d),|\s[/／]\s|\s[-–—~]\s|\s{3,9}")

# Chinese words that are separated by spaces.
_SPACED = re.compile(r"[\u3400-\u9fff]{2,8}(?:\s{1,4}[\u3400-\u9fff]{2,8}){2,30}")

_TIGHT_SLASHES = re.compile(r"[^\s/／]{1,30}(?:[/／][^/／\n]{1,30}){2,30}")

# Matches "【a】【b】", "#a #b", "「a」「b」", "[a] [b]", "`a` `b`" and "① a ② b".
_ENCLOSED = re.compile(
    r"\s*(?:【(?P<a>[^【】]+)】|「(?P<b>[^「」]+)」|『(?P<c>[^『』]+)』|〔(?P<n>[^〔〕]+)〕|《(?P<d>[^《》]+)》|\[(?P<e>[^\[\]]+)\]"
    r"|<(?P<f>[^<>/]+)>|`(?P<g>[^`]+)`|\*\*(?P<h>[^*]+)\*\*|“(?P<i>[^“”]+)”|\"(?P<j>[^\"]+)\""
    r"|[①-⑳](?P<k>[^①-⑳]+)|[（(]\d{0,2}[)）]?(?P<l>[^()（）]+)[)）]|[＃#](?P<m>[^\s#＃,，、;；]+)#?)"
    r"[\s,，、;；/|·.。]*"
)

_GROUP_NAME = chinese_pattern(
    r"(?:(?:main|primary|secondary|other|key|important|core|technical|general|related|additional)\s?)?"
    r"(?:people|persons?|names?|places?|locations?|countries|organi[sz]ations?|companies|concepts?"
    r"|terms?|topics?|themes?|subjects?|keywords?|entit(?:y|ies)|events?|dates?|objects?|products?"
    r"|technolog(?:y|ies)|tools?|methods?|actions?|others?|nouns?|verbs?|primary|secondary|main"
    r"|人物|人名|地点|地名|国家|机构|组织|公司|概念|术语|主题|事件|时间|日期|物品|产品|技术|方法|其他"
    r"|核心词?|主要词?|次要词?|相关词?|关键词|词)",
    re.I,
)

# A keyword with its explanation: "Inflation – the rise of prices", "Inflation: 0.9".
_EXPLAINED = re.compile(
    r"(?P<word>[^:：–—\n]{1,60}?)(?:\*\*)?(?:\s?[:：](?:\*\*)?\s|：|\s(?:[-–—]{1,2}|[-=]>|→|=)\s|——|\t|\s?\|\s)"
    r"\s{0,4}(?P<rest>\S.*)"
)

_IN_PARENTHESES = re.compile(r"(?P<word>[^()（）]{1,60}?)\s?[(（](?P<rest>[^()（）]{1,120})[)）]")

_ACRONYM = re.compile(r"[A-Z][A-Za-z0-9.-]{0,9}s?")

_NUMBER_ONLY = re.compile(r"\W*\d{1,3}(?:[.,]\d{1,4})?\s?(?:%|/\s?\d{1,3}|分)?\W*")


def parse_keywords(answer: str) -> list[str]:
    """Return the keywords in an answer, without duplicates.

    Explanations, scores and the names of groups are left out.

    Raises:
        ValueError: If the answer is empty, is a refusal, states that the passage is missing, or
            consists mostly of sentences.

    Example:
        >>> parse_keywords("关键词：长江、黄河，Yangtze; 黄河")
        ['长江', '黄河', 'Yangtze']
        >>> parse_keywords("1. **Inflation** – the rise of prices\\n2. **Wage**: what is paid")
        ['Inflation', 'Wage']
    """
    text, value = read_json(_BETWEEN_TAGS.sub(r"\1\n", answer), _KEYS)
    if not text:
        return []
    check_passage_given(text)
    words = _of_text(text) if value is None else _of_value(value)
    words = [_without_sign(word) for word in words]
    words = [word for word in words if _WORD.search(word)]
    short = [word for word in words if _is_short(word)]
    if not short or 2 * len(short) < len(words):
        raise ValueError("the answer must be a list of keywords")
    return unique(short)


# A comma between the tags of two keywords.
_BETWEEN_TAGS = re.compile(r"(</\w{1,30}>)\s{0,4}[,，、;；]\s{0,4}(?=<\w)")


def _without_sign(word: str) -> str:
    """Remove the number, bold formatting, hash sign or pictogram of a keyword."""
    word = without_pictogram(_KEYWORD_NUMBER.sub("", word.strip(), count=1))
    return strip_markup(word).lstrip("#＃").strip()


def _is_short(word: str) -> bool:
    if len(word) > _MAX_KEYWORD:
        return False
    return len(word.split()) <= _MAX_KEYWORD_WORDS


def _of_value(value: Any) -> list[str]:
    """Return the keywords in a JSON value. Texts in a list are not split at commas."""
    if isinstance(value, Mapping):
        named = value_of(value, _KEYS)
        if isinstance(named, Mapping):
            return _of_value(named)
        if named is None and all(_NUMBERED_KEY.fullmatch(str(key)) for key in value):
            return [*texts_in([*value.values()], _KEYS)]
        if named is None and _is_explained(value):
            return [str(key) for key in value]
    texts = [*texts_in(value, _KEYS)]
    if len(texts) == 1:
        return _parts(texts[0])
    split = [_parts(text) for text in texts]
    lists = [parts for parts in split if len(parts) > _MAX_IN_NAME]
    if len(lists) > 1:
        return [*chain.from_iterable(split)]
    return _without_explanations(texts)


_NUMBERED_KEY = chinese_pattern(rf"(?:{_NAMES})[\s_-]?\d{{1,2}}", re.I | re.X)

_MAX_IN_NAME = 2  # maximum number of parts of a name, as in "Smith, John"


def _is_explained(record: Mapping[Any, Any]) -> bool:
    """Return whether the keys of an object are keywords, and its values explain or rate them."""
    values = [*record.values()]
    if len(values) < _MIN_EXPLAINED:
        return False
    if all(isinstance(value, int | float) for value in values):
        return True
    return all(isinstance(value, str) and len(value.split()) > _MAX_IN_NAME for value in values)


_MIN_EXPLAINED = 2  # minimum number of keywords with explanations


def _of_text(text: str) -> list[str]:
    """Return the keywords in a table, in a list or in a line with separators."""
    lines = [line for line in text.split("\n") if not _is_remark(line)]
    rows = read_table(lines, _KEYWORD_COLUMN)
    if rows:
        return named_column(rows, _KEYWORD_COLUMN)
    lines = _without_nested([line for line in lines if line.strip()])
    lines = [line for line in lines if not (_is_sentence(line) or _is_title(line))] or lines
    listed = [line for line in lines if _is_listed(line)]
    if len(listed) > 1:
        return _of_list(listed)
    groups = [_EXPLAINED.fullmatch(line.replace("**", "").strip()) for line in lines]
    if len(lines) > 1 and all(match is not None and _is_group(match["word"]) for match in groups):
        return _of_list(lines)
    body = "\n".join(_without_lead(line) for line in lines)
    enclosed = _enclosed(body)
    if enclosed:
        return enclosed
    items = read_items(body, _KEYS) or []
    return [*chain.from_iterable(_parts(item.text) for item in items)]


# A heading such as "**Keywords**".
_TITLE = chinese_pattern(
    rf"[\s*_\#【]{{0,9}}(?:\w{{1,12}}\ ){{0,3}}(?:{_NAMES})[\s*_】:：]{{0,9}}", re.I | re.X
)


def _is_title(line: str) -> bool:
    bare = line.strip()
    return bare.startswith(("#", "*", "【")) and _TITLE.fullmatch(line) is not None


def _is_remark(line: str) -> bool:
    return _REMARK.match(line) is not None


def _is_listed(line: str) -> bool:
    return split_bullet(line)[1] or _KEYWORD_NUMBER.match(line) is not None


# Matches "Keyword 1: " and "关键词一：".
_KEYWORD_NUMBER = chinese_pattern(
    rf"[\s*_-]{{0,9}}(?:{_NAMES})\s?(?:\#?\d{{1,2}}|[一二三四五六七八九十])[*_]{{0,2}}\s?[:：.、-][*_]{{0,2}}\s{{0,9}}",
    re.I | re.X,
)


def _is_sentence(line: str) -> bool:
    """Return whether a line is a sentence about the keywords, such as "I chose these terms."."""
    bare = split_bullet(line)[0].strip(" *_")
    if _is_listed(line) or not bare.endswith((".", "。", "!", "！", ":", "：")):
        return False
    is_lead = bare.endswith((":", "："))
    return is_lead or (len(_parts(bare)) == 1 and len(bare.split()) > _MAX_IN_NAME + 1)


def _without_lead(line: str) -> str:
    """Remove an announcement, such as "Keywords: ", from a line."""
    for lead in (_LEAD, _ARE_LEAD):
        found = lead.match(line)
        if found is not None:
            return line[found.end() :]
    return line


def _without_nested(lines: Sequence[str]) -> list[str]:
    """Remove the names of groups above nested keywords, or explanations below keywords."""
    outer = min([indent_of(line) for line in lines if _is_listed(line)], default=0)
    nested = [line for line in lines if indent_of(line) > outer + 1]
    above = [line for line in lines if indent_of(line) <= outer + 1]
    if not nested or not any(_is_listed(line) for line in above):
        return [*lines]
    texts = [split_bullet(line)[0] for line in nested]
    is_group = len(nested) > len(above) and all(_is_term(text) for text in texts)
    return nested if is_group else above


def _is_term(text: str) -> bool:
    is_ended = text.endswith((".", "。"))
    return not is_ended and len(text.split()) <= _MAX_TERM_WORDS and len(text) <= _MAX_KEYWORD


_MAX_TERM_WORDS = 4  # maximum number of words of a nested keyword


def _of_list(lines: Sequence[str]) -> list[str]:
    """Return the keywords in the items of a list."""
    texts: list[str] = []
    for line in lines:
        number = _KEYWORD_NUMBER.match(line)
        texts.append(line[number.end() :] if number is not None else split_bullet(line)[0])
    words: list[str] = []
    for text in _without_explanations(texts):
        group = _EXPLAINED.match(text.replace("**", ""))
        is_group = group is not None and _is_group(group["word"])
        enclosed = _enclosed(text)
        if enclosed and len(enclosed) > 1:
            words += enclosed
        elif group is not None and is_group:
            words += _parts(group["rest"])
        elif len(_COMMAS.split(text)) > _MAX_IN_NAME:
            words += _parts(text)
        else:
            words += re.split("[、;；，]", text)
    return words


def _is_group(word: str) -> bool:
    return _GROUP_NAME.fullmatch(word.strip(" *_")) is not None


def _without_explanations(texts: Sequence[str]) -> list[str]:
    """Remove explanations after keywords if they follow all keywords or a keyword in bold."""
    for pattern in (_EXPLAINED, _IN_PARENTHESES):
        found = [pattern.fullmatch(text.replace("**", "").strip()) for text in texts]
        matches = [match for match in found if match is not None]
        is_common = len(matches) == len(texts) > 1
        is_group = any(_is_group(match["word"]) for match in matches)
        are_acronyms = all(_is_acronym(match) for match in matches)
        is_distinct = len({match["word"] for match in matches}) == len(matches)
        are_titles = all(_TITLE_CASE.fullmatch(match["rest"]) for match in matches)
        if is_common and is_distinct and not (is_group or are_acronyms or are_titles):
            return [match["word"] for match in matches]
    return [_bold_word(text) for text in texts]


# A subtitle, as in "Star Wars: A New Hope". Short words may have small letters.
_TITLE_CASE = re.compile(r"[A-Z0-9][\w'’-]*(?:\s(?:[A-Z0-9][\w'’-]*|[a-z]{1,3}))+")


def _is_acronym(found: re.Match[str]) -> bool:
    """Return whether the words in parentheses are an acronym, which is not an explanation."""
    rest = found["rest"]
    is_bracket = found.re is _IN_PARENTHESES
    is_number = _NUMBER_ONLY.fullmatch(rest) is not None
    return is_bracket and not is_number and _ACRONYM.fullmatch(rest) is not None


# Matches "**Inflation** – the rise of prices" and "**Inflation:** the rise of prices".
_BOLD = re.compile(
    r"\*\*(?P<word>[^*\n]{1,60}?)(?::\*\*|：\*\*|\*\*\s?[:：]|\*\*\s[-–—]|\*\*\s?[(（])\s{0,4}\S.*"
)


def _bold_word(text: str) -> str:
    found = _BOLD.fullmatch(text.strip())
    if found is None or _is_group(found["word"]):
        return text.replace("**", "")
    return found["word"]


def _enclosed(text: str) -> list[str]:
    """Return the texts in brackets or quotation marks if the text consists of at least two."""
    words: list[str] = []
    at = 0
    stripped = text.strip()
    while at < len(stripped):
        found = _ENCLOSED.match(stripped, at)
        if found is None:
            return []
        words.append(next(group for group in found.groups() if group is not None))
        at = found.end()
    return words if len(words) > 1 else []


# The Chinese word for "and so on" behind the last keyword. In "高等" it is a part of the word.
_AND_OTHERS = chinese_pattern(r"(?<=[\u3400-\u9fff]{2})(?<![高平中初同对优相不])等{1,2}\Z")


def _parts(text: str) -> list[str]:
    """Split a line at commas and other separators. The separators may be slashes."""
    text = text.strip().strip("[]{}")
    if text[:1] in ("(", "（") and len(re.findall("[()（）]", text)) == len("()"):
        text = text.rstrip(".。").strip("()（）")
    if _SPACED.fullmatch(text):
        return text.split()
    parts = [part for part in _SEPARATORS.split(text) if part.strip()]
    if len(parts) == 1 and _TIGHT_SLASHES.fullmatch(text):
        parts = re.split("[/／]", text)
    if len(parts) > _MAX_IN_NAME:
        parts[-1] = re.sub(r"\A\s*(?:and\s|以及)\s?(?=\S)", "", parts[-1])
        parts[-1] = _AND_OTHERS.sub("", parts[-1])
    return [part for part in parts if not _AND_SO_ON.fullmatch(part.strip())]


_AND_SO_ON = re.compile(r"etc\.?|等{1,2}|\.{3}|…")
