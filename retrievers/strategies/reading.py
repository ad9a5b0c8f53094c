"""Read queries, questions and passages out of what a model answers, as it likes to write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ...nodegraph.llm_answers import check_answer, clean, json_at, says_none
from ...nodegraph.llm_lines import (
    ANSWER,
    HEADING,
    SEPARATOR,
    bare,
    each_once,
    item_of,
    normal,
    strings,
    unlabelled,
    unwrap,
)

LONGEST_QUERY = 400
"""Characters of a query that a model made, at most; one that is longer is not used."""
LONGEST_PASSAGE = 2000
"""Characters of a passage that a model made, at most; what is more is cut off."""
KEYS = (
    *("sub_questions", "subquestions", "sub-questions", "questions", "queries", "phrasings"),
    *("rewritten_question", "rewritten_query", "rewritten", "rewrite", "standalone_question"),
    *("sub_question", "subquestion", "question", "query", "text", "passage", "answer", "q"),
    *("子问题", "问题", "改写后的问题", "改写", "查询", "检索词", "段落", "答案"),
)
_LONGEST_PHRASE = 200
# "Rewritten question:", "子问题 1：", "**Query 2**:"
_LABEL = re.compile(
    r"""\s*[*_【\[#]{0,3}\s*(?P<kind>
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
    )\s*\#?\s*(?:\d{1,2}|[一二三四五六七八九十])?\s*(?:[*_】\]]{0,3}\s*[:：]|】)\s*[*_]{0,3}\s*""",
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
_END = re.compile(r"(?:\s*</[a-z_-]{1,20}>)+\s*\Z|\s*\|\s*\Z")
_ASIDE = re.compile(r"(?<=[?？])[\"'”’」』*_`]*\s*[(（][^()（）]*[)）]\s*$")
_ORIGINAL = re.compile(r"original|initial|user|input|follow|原|用户", re.I)
_REMARK = re.compile(
    r"""\s*[*_【\[(（]{0,3}(?:explanations?|reason(?:s|ing)?|notes?|rationale|analysis|justification
      |comments?|changes(?:\ made)?|steps?|why|说明|解释|理由|备注|注意?|分析|原因|修改说明|思路)
    \s*[*_】\]]{0,3}\s*[:：]""",
    re.I | re.X,
)
_POLITE = re.compile(
    r"""\A\s*(?:(?:sure(?:\ thing)?|certainly|of\ course|okay|ok|absolutely|great)[,.!]+\s*
      |(?:好的?|当然(?:可以)?|没问题|可以的?)[，,。！!]+\s*)+""",
    re.I | re.X,
)
_LEADS = re.compile(
    r"\A\s*(?:here(?:'s|’s|\s+is|\s+are)|below (?:is|are)|(?:i|you) (?:would|could|can)"
    r"|以下|下面|这是|您可以|你可以|(?:原|该|这个)?问题可以|可以)[^\n:：?？]{0,60}[:：]\s*",
    re.I,
)
_SIMPLE = re.compile(
    r"""[^\n]{0,80}?(?:\balready\b[^\n]{0,20}\b(?:simple|atomic|clear|single)
      |\b(?:no|not|n't|without)\b[^\n]{0,40}\b(?:decompos|break|split|sub-?questions?|sub-?quer)
      |\b(?:cannot|can't|can\ not)\ be\ (?:further\ )?(?:decomposed|broken|split|divided)
      |(?:is|single|a)\s+(?:simple|atomic)(?:\ question|\ query|,|\.|$)
      |(?:无需|不需要?|不必|不用|无须|没有必要|不能|无法)[^\n]{0,6}(?:再|继续|进一步)?(?:分解|拆分|拆解|细分)
      |(?:没有|无)子问题|(?:已经|已|本身)(?:很|足够|够|就|是)*(?:简单|单一|明确|一个简单))""",
    re.I | re.X,
)
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


def read_query(answer: str, query: str = "") -> str:
    """Return the one query in a model's answer, in place of another.

    Raises:
        ValueError: If there is none, or it answers the other one.

    Example:
        >>> read_query("Sure! Rewritten question: **How long is the Nile?**")
        'How long is the Nile?'
    """
    found = []
    for kind, line, _ in _lines(answer):
        if kind is not None and _ORIGINAL.search(kind):
            continue
        found.append((kind is None, line))
    found.sort(key=lambda item: item[0])  # what is labelled as the rewriting goes before the rest
    for _, line in found:
        text = bare(line)
        if not _is_query(text):
            continue
        if _answers(line, query):
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
    lines = [(line, listed) for kind, line, listed in _lines(answer) if not _is_original(kind)]
    if any(listed for _, listed in lines):
        lines = [(line, listed) for line, listed in lines if listed]
    found = []
    for line, _ in lines:
        if "?" in line or "？" in line:
            found += _questions(line)
        elif not _answers(line, query):
            found.append(bare(line))
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
    text = clean(answer)
    check_answer(text)
    value = _json(text)
    if says_none(text) or (value is not None and not any(map(str.strip, strings(value, KEYS)))):
        return []
    lines = [(line, listed) for kind, line, listed in _lines(answer) if not _is_original(kind)]
    asked = [(question, listed) for line, listed in lines for question in _questions(line)]
    if not asked:  # some leave out the question marks
        bared = [
            (bare(line), listed) for line, listed in lines if "?" not in line.replace("？", "?")
        ]
        asked = [(line, listed) for line, listed in bared if asks(line)]
    phrases = [bare(line) for line, listed in lines if listed and _is_phrase(line)]
    if value is not None and not _has_list(value):
        phrases = []  # {"error": "..."}
    if phrases and (not asked or _has_list(value)):  # "Nile length" serves as well
        asked = [(phrase, True) for phrase in phrases]
    if any(listed for _, listed in asked):
        asked = [(question, listed) for question, listed in asked if listed]
    found = [question for question, _ in asked]
    if _SIMPLE.match(text) and not any(listed for _, listed in asked):
        return []
    if found and all(normal(each) == normal(query) for each in found):
        return []
    return _some(found, query, limit, "question")


def read_passage(answer: str, query: str) -> str:
    """Return the passage that a model wrote for a query.

    Raises:
        ValueError: If it wrote none, or asks a question instead.

    Example:
        >>> read_passage("Passage: The Nile is 6,650 km long.", "How long is the Nile?")
        'The Nile is 6,650 km long.'
    """
    text = _prose(answer)
    if says_none(text):
        raise ValueError("the model says that there is nothing to write")
    if normal(text).strip("?？") == normal(query).strip("?？"):
        raise ValueError("the answer repeats the query")
    if "\n" not in text and text.endswith(("?", "？")):
        raise ValueError("the answer is a question and no passage")
    return text[:LONGEST_PASSAGE].rstrip()


def read_partial(answer: str) -> str | None:
    """Return what a model answers to a question from passages, None where it doesn't know.

    Raises:
        ValueError: If the answer is empty.

    Example:
        >>> read_partial("Answer: Cao Xueqin"), read_partial("资料中没有提到。")
        ('Cao Xueqin', None)
    """
    text = clean(answer)
    if not re.search(r"\w", text):
        raise ValueError("the answer is empty")
    try:
        text = _prose(answer)
    except ValueError:  # it refuses: there is nothing to know
        return None
    return None if says_none(text) or _UNKNOWN.match(text) else text[:LONGEST_PASSAGE].rstrip()


_UNKNOWN = re.compile(
    r"""(?:(?:i\ )?(?:do\ not|don(?:'|’)t)\ know|unknown|not\ (?:found|known|given|stated|specified
        |mentioned|available|provided)|no\ answer|cannot\ be\ (?:answered|determined))\b
    |(?:the|these|this|there|none|no|it)\b[^\n.]{0,80}\b(?:no|not|n't|never|don't|doesn't|isn't)\b
      [^\n.]{0,30}\b(?:mention|contain|say|state|provide|specif|give|include|information|answer
      |tell|enough|found|known)
    |[^\n。]{0,30}(?:没有|未|并未|无法|不能|不)(?:直接|明确|找到|足够)*的?(?:提到|提及|包含|说明|给出|提供|回答|确定
      |答案|知道|涉及|相关|信息|得知|得出|找到)
    |不知道|未知|不详|不清楚""",
    re.I | re.X,
)


def _lines(answer: str) -> Iterator[tuple[str | None, str, bool]]:
    """Yield what an answer says: its label (None where it has none), the text, whether listed.

    Headings, remarks, answers and phrases that lead over are left out; of JSON its texts are taken.

    Raises:
        ValueError: If the answer is empty, or a refusal.
    """
    text = clean(answer)
    check_answer(text)
    value = _json(text)
    if value is None and re.match(r"[\[{]\s*[\"'\[{]", text):
        raise ValueError("the answer begins like JSON and is none")
    if value is not None:
        texts = "\n".join(strings(value, KEYS)).split("\n")
        yield from ((None, each, True) for each in texts if re.search(r"\w", each))
        return
    for line in text.split("\n"):
        if _REMARK.match(line) or SEPARATOR.fullmatch(line):
            continue
        if _DECORATED.match(line) and _LABEL.fullmatch(f"{line.strip()}:"):
            continue
        line = _END.sub("", _ORDER.sub("", line, count=1))
        line, listed = item_of(_LEADS.sub("", _POLITE.sub("", line, count=1), count=1))
        label = _LABEL.match(line)
        kind = None
        if label is not None:
            kind, line = label["kind"], line[label.end() :]
            line = re.sub(r"\*{2,}\s*$", "", line) if line.count("**") % 2 else line
        elif (heading := HEADING.match(line + "\n")) and heading.end():
            line = line[heading.end() :]
        if (told := ANSWER.match(line)) and not line.rstrip().endswith(("?", "？")):
            continue
        line = _ORDER.sub("", line, count=1)
        line = _ASIDE.sub("", line[told.end() :] if told else line)
        if _REMARK.match(line) or says_none(line):
            continue
        if re.search(r"\w", line) and not line.rstrip(" *").endswith((":", "：")):
            # "Sub-question 2: ..." is as good as a number.
            yield kind, line.strip(), listed or bool(kind and re.search(r"\d", label[0]))  # type: ignore[index]


def _json(text: str) -> Any:
    """Return the JSON that an answer is, or has in it; None where there is none."""
    found = re.search(r"^[ \t]*(?:\[\s*[\"'{]|\{\s*[\"'])", text, re.M)
    return None if found is None else json_at(text, found.end() - len(found[0].lstrip()))


def _prose(answer: str) -> str:
    """Return an answer's text without label and quotes; of JSON its texts.

    Raises:
        ValueError: If the answer is empty, or a refusal.
    """
    text = clean(answer)
    check_answer(text)
    value = _json(text) if text[:1] in "[{" else None
    if value is not None:
        text = "\n".join(strings(value, KEYS))
    text = _LEADS.sub("", _POLITE.sub("", text, count=1), count=1)
    for label in (_LABEL, ANSWER, HEADING):
        if (found := label.match(text)) and found.end():
            text = text[found.end() :]
    text = unwrap(text.strip().strip("*`"))
    if not re.search(r"\w", text):
        raise ValueError("the answer is empty")
    return text


def _questions(line: str) -> list[str]:
    """Return the questions that end with a mark in a line, without what stands before a list."""
    found = []
    rest = unlabelled(line)
    for each in re.findall(r"[^?？]*[?？]+[\"'”’」』)）*_`]*", rest):
        # Of a sentence before the question only the question is wanted.
        *_, last = re.split(r"(?<=[.!])\s+(?=[A-Z\u4e00-\u9fff])|(?<=[。！])", each)
        last = last if _ASKS.match(last) else each  # "Who was St. Paul?" is one sentence
        found.append(bare(_ORDER.sub("", unlabelled(last), count=1)))
    return [each for each in found if re.search(r"\w", each) and not _OFFERS.match(each)]


def _some(found: Sequence[str], query: str, limit: int, what: str) -> list[str]:
    """Return what can be used, each once, ``limit`` at most."""
    good = [each for each in found if _is_query(each) and normal(each) != normal(query)]
    if not good:
        raise ValueError(f"there is no {what} in the answer")
    return each_once(good)[:limit]


def _is_query(text: str) -> bool:
    return len(text) <= LONGEST_QUERY and re.search(r"\w", text) is not None


def _is_phrase(line: str) -> bool:
    """Tell whether a line of a list can be searched for: short, in words, and no statement."""
    text = line.strip().strip("*_`\"”' ")
    words = re.search(r"[^\W\d_]{2}", text) is not None and not _OFFERS.match(text)
    return words and len(text) <= _LONGEST_PHRASE and not text.endswith((".", "。", "!", "！"))


def _has_list(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_list, value.values()))
    return isinstance(value, list)


def _is_original(kind: str | None) -> bool:
    return kind is not None and _ORIGINAL.search(kind) is not None


def _answers(line: str, query: str) -> bool:
    """Tell whether a line states something where the query asks."""
    text = line.strip().strip("*_`\"”' ")
    states = text.endswith((".", "。", "!", "！")) and not text.endswith("...")
    return states and asks(query) and not asks(text) and not _TELLS.match(text)


def read_routes(answer: str, names: Sequence[str], multiple: bool = False) -> list[str]:
    """Return which of some names a model chose, by name or number, in the order it says them.

    Raises:
        ValueError: If it chose none of them.

    Example:
        >>> read_routes('{"names": ["web"]}', ["docs", "web"]), read_routes("2", ["docs", "web"])
        (['web'], ['web'])
    """
    text = clean(answer)
    check_answer(text)
    value = _json(text)
    if value is not None:
        text = "\n".join(strings(value, (*_ROUTE_KEYS, *KEYS)))
    for part in (text.split("\n")[0], text):
        chosen = _named(part, names) or _numbered(part, names)
        if chosen:
            everywhere = _named(text, names) or _numbered(text, names)
            return everywhere if multiple else chosen[:1]
    raise ValueError(f"the answer names none of {', '.join(map(repr, names))}")


_ROUTE_KEYS = ("names", "name", "routes", "route", "choices", "choice", "selections", "selection")


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
