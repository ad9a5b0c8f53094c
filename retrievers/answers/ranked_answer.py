"""Parse an answer and the confidence of the model in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...nodegraph.models.output.answer_text import clean
from ...nodegraph.models.output.chinese_script import chinese_pattern
from ...nodegraph.models.output.free_text import FinalAnswer, parse_final_answer
from ...nodegraph.models.output.json_values import find_json, objects_in, texts_in, value_of
from ...nodegraph.models.output.lines import is_extra, label_pattern, without_label
from ...nodegraph.models.output.scores import read_score
from ...nodegraph.models.output.tables import read_table
from ...nodegraph.models.output.tags import tagged_value
from ...nodegraph.models.output.thoughts import without_thoughts

RankedAnswer = tuple[FinalAnswer, float | None]
"""An answer with the confidence of the model, from 0 to 100 or None if it is unknown."""

_ANSWER_KEYS = tuple(
    """answer final_answer short_answer response reply text result output content
    回答 答案 最终答案 答复 答覆""".split()
)

_SCORE_KEYS = tuple(
    """confidence score confidence_score confidence_level certainty certainty_score probability
    rating relevance relevance_score sureness likelihood conf
    把握 把握程度 置信度 信心 信心分数 信心程度 自信度 分数 得分 评分 可信度
    确信度 确定性 确定程度 打分""".split()
)

_SCORE_WORDS = (
    r"(?:(?:my|answer|overall)\ )?(?:(?:confidence|certainty)(?:[ _](?:score|level|rating))?|score"
    r"|probability|likelihood|rating|把握(?:程度|度)?|置信(?:度|水平)?|信心(?:分数|程度|指数|度|值)?|自信(?:度|程度)"
    r"|可信度|确信(?:度|程度)|确信(?:度|程度)|确定(?:性|程度|度)|[得评打]分|分数值?|评分)"
    r"(?:\s?[(（\[][^()（）\[\]\n]{1,30}[)）\]])?"
)

_VALUE_SIGN = r"[\s*_】\])）\"”]{0,5}(?:[:：=]|】|\s-\s|\sis\b|[为是])[\s*_]{0,5}"

_SCORE_LINE = chinese_pattern(
    rf"""^[^\w\n]{{0,12}}(?:\d{{1,2}}[.)、]\s)?[*_【\["“]{{0,3}}(?:{_SCORE_WORDS}){_VALUE_SIGN}
    (?P<value>[^\n]*)$""",
    re.I | re.M | re.X,
)


def _value(name: str) -> str:
    """Return a pattern for a number with its scale, as in "8/10", "80 %" and "九成"."""
    return (
        rf"(?P<{name}>[~≈约]?\s?(?:\d{{1,3}}(?:\.\d{{1,9}})?"
        r"(?:\s?(?:%|％|percent|分|/\s?\d{1,3}|out\ of\ \d{1,3}))?"
        r"|百分之[\d一二三四五六七八九十百]{1,3}|[一二三四五六七八九十]成[五半]?))"
    )


_IS = r"\s?(?:[:：=]|is\b|[为是])?[*_]{0,2}[:：]?\s?"

_SURE = r"(?:confident|confidence|certain|certainty|sure|把握|置信度|信心)"

# A score at the end of a line: "(Confidence: 80%)", ". Score: 85", "[80% confident]".
_SCORE_AT_END = chinese_pattern(
    rf"""(?:[\s*_]{{0,4}}[(（\[【][*_]{{0,2}}(?:{_SCORE_WORDS}){_IS}{_value("a")}[*_]{{0,2}}[)）\]】]
    |(?:(?<=[.。!！?？;；\])])|[,，;；|｜/]|\s[-–—]|\s(?=\*\*))
      \s{{0,4}}[*_]{{0,2}}(?:{_SCORE_WORDS})(?=\s?[*_]{{0,2}}\s?(?:[:：=为是]|is\b)){_IS}{_value("b")}
    |\s{{0,4}}[(（\[【]\s?(?:i['’]m\ |i\ am\ )?{_value("c")}\s?{_SURE}\s?[)）\]】]
    |(?<=[.。!！?？\]\n])\s{{0,4}}(?:my\ |the\ |我的)(?:{_SCORE_WORDS})
      (?:\ (?:in|for|of)\ (?:this|the|my|it)(?:\ answer)?)?\s?(?:is|[是为])\s?{_value("f")}
    |(?<=[.。!！?？\]\n])\s{{0,4}}i(?:['’]d|\ would)?\ (?:give|rate|assign|score)
      [^.\n\d]{{0,60}}?{_value("g")}
    |\s{{0,4}}[(（\[]\s?(?P<d>\d{{1,3}}\s?/\s?100)\s?[)）\]]
    |(?:(?<=[.。!！?？])|\n)\s{{0,4}}(?:(?:i['’]m|i\ am)\ (?:about\ |roughly\ )?
        |我(?:对此)?[有的]?[大约]{{0,2}}){_value("e")}\s?的?{_SURE}
      (?:\ (?:in|of|about)\ (?:this|the|my|it)(?:\ answer)?)?)
    [\s*_.。|]{{0,9}}(?:\Z|$)""",
    re.I | re.X | re.M,
)

_ANSWER_COLUMN = chinese_pattern(
    rf"\W*(?:(?:final\ |short\ )?answer|response|回答|答案|{_SCORE_WORDS})\W*", re.I
)

_ANSWER = label_pattern(
    r"(?:final\ |short\ |my\ |the\ )?answer|A|response|答案?|回答|最终(?:答案|回答)"
)

# A line of text that the prompt did not request.
_REMARK = label_pattern(
    r"reason(?:ing)?|explanation|rationale|justification|evidence|quotes?|analysis|thoughts?"
    r"|question|passage|sources?|step[- ]by[- ]step|理由|原因|解释|说明|依据|分析"
    r"|思考|来源|问题|推理|引用|原文|出处"
)

# Quotation marks around the whole answer, as in YAML.
_QUOTED = re.compile(r"\A\"([^\"\n]+)\"\Z")

_ATTRIBUTE = re.compile(
    r"<(?P<name>answer|response)\s(?:score|confidence)\s?=\s?[\"'](?P<value>[^\"'<>]{1,10})[\"']\s?>",
    re.I,
)


def parse_ranked_answer(answer: str) -> RankedAnswer:
    """Parse an answer and its confidence from JSON, tags, a table or labeled text.

    Raises:
        ValueError: If the answer is empty.

    Example:
        >>> parse_ranked_answer("Answer: Tea [1].\\nConfidence: 80 (clear)")
        (FinalAnswer(text='Tea [1].', answered=True), 80.0)
        >>> parse_ranked_answer("回答：茶[1]。\\n**把握：** 90")[1]
        90.0
        >>> parse_ranked_answer("It is 450 kg. (Confidence: 8/10)")[1]
        80.0
    """
    said = _of_record(answer)
    if said is None:
        said = _of_text(answer)
    text, score = said
    final = parse_final_answer(text)
    if final.answered:
        final = parse_final_answer(_QUOTED.sub(r"\1", without_label(final.text, _ANSWER)))
    if final.answered and not final.text:
        raise ValueError("the answer is empty")
    return final, score


def _of_record(answer: str) -> tuple[str, float | None] | None:
    """Return the answer and the score in JSON, tags or a table. In plain text, return None."""
    plain = without_thoughts(answer)
    tagged = _ATTRIBUTE.sub(r"<score>\g<value></score>\n<\g<name>>", plain)
    for value in (_tags(tagged), _json(answer), _table(plain)):
        found = _of_value(value)
        if found is not None:
            return found
    return None


def _tags(text: str) -> Any:
    """Return the texts in tags if one of the tags is a score."""
    value = tagged_value(text)
    is_scored = any(_has_score(record) for record in _objects(value))
    return value if is_scored else None


def _json(answer: str) -> Any:
    text = clean(answer)
    if "{" not in text:
        return None
    try:
        value = find_json(text)
    except ValueError:
        if text.startswith("{"):
            raise
        return None
    is_scored = any(_has_score(record) for record in _objects(value))
    return value if is_scored or text.startswith(("{", "[")) else None


def _table(text: str) -> Any:
    """Return the first row of a table of answers, or the rows of a table of labels as an object."""
    lines = text.strip().split("\n")
    if "|" not in lines[-1]:
        return None
    rows = read_table(lines, _ANSWER_COLUMN)
    if not rows:
        return None
    if any(_has_score(row) for row in rows):
        return [*rows]
    pairs = [[*row] for row in rows[:1]] + [[*row.values()] for row in rows]
    record = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
    return record if _has_score(record) else None


def _has_score(record: Mapping[Any, Any]) -> bool:
    return value_of(record, _SCORE_KEYS) is not None


def _objects(value: Any) -> Iterator[Mapping[Any, Any]]:
    if isinstance(value, list | Mapping):
        yield from objects_in(value)


def _of_value(value: Any) -> tuple[str, float | None] | None:
    """Return the answer and the score in the objects of a JSON value."""
    for record in _objects(value):
        keys = {key for key in _ANSWER_KEYS if value_of(record, (key,)) is not None}
        is_null = not keys and value_of(dict.fromkeys(record, 1), _ANSWER_KEYS) == 1
        if not keys and not is_null:
            continue
        said = value_of(record, [key for key in _ANSWER_KEYS if key in keys])
        if isinstance(said, Mapping) and value_of(said, _ANSWER_KEYS) is not None:
            continue  # The answer is the inner object.
        scored = [inner for inner in _objects(value) if _has_score(inner)]
        scores = [record] if _has_score(record) else scored
        score = read_score(value_of(scores[0], _SCORE_KEYS)) if scores else None
        return _text_of(said), score
    return None


def _text_of(said: Any) -> str:
    """Return the text of an answer in JSON."""
    if said is None:
        return "null"
    if isinstance(said, bool):
        return str(said)
    text = "\n".join(texts_in(said, _ANSWER_KEYS))
    if isinstance(said, Mapping) and not text:
        return json.dumps(said, ensure_ascii=False)
    return text


# A fence around the whole text.
_FENCED = re.compile(r"\A\s*```\w{0,12}\n(.*)\n```\s*\Z", re.S)

# A label in the line above its text: "### Score".
_LABEL_ABOVE = chinese_pattern(
    rf"^[ \t]{{0,4}}(?:\#{{1,6}}\s{{1,4}})?\*{{0,2}}(final\ answer|answer|答案|回答|{_SCORE_WORDS})"
    r"\*{0,2}[:：]?\*{0,2}[ \t]*\n\s{0,9}(?=\S)",
    re.I | re.M | re.X,
)

# A second label in the line of a score.
_INLINE_ANSWER = chinese_pattern(
    r"\s{0,4}[|,，;；.。]\s{0,4}[*_]{0,2}(?:answer|答案|回答)[*_]{0,2}\s?[:：][*_]{0,2}\s{0,4}",
    re.I,
)


def _of_text(answer: str) -> tuple[str, float | None]:
    """Return the answer and the score in labeled lines, or in a text that ends with a score."""
    answer = _LABEL_ABOVE.sub(r"\1: ", _FENCED.sub(r"\1", answer))
    lines = [*_SCORE_LINE.finditer(answer)]
    if not lines:
        return _before_score(answer)
    line = lines[-1]
    inline = _INLINE_ANSWER.search(line["value"])
    score = read_score(line["value"])
    if inline is not None:
        return line["value"][inline.end() :], score
    before = answer[: line.start()]
    if before.strip():
        return _requested(before), score
    return _requested(answer[line.end() :]), score


def _before_score(answer: str) -> tuple[str, float | None]:
    """Return the text before a score at the end of a line, and the score."""
    ends = [*_SCORE_AT_END.finditer(answer)]
    if not ends:
        return answer, None
    value = next(group for group in ends[-1].groups() if group is not None)
    score = read_score(value)
    if score is None:
        return answer, None
    return _requested(answer[: ends[-1].start()]), score


def _requested(text: str) -> str:
    """Return the text without labeled remarks before and after the answer."""
    labels = [*_ANSWER.finditer(text)]
    if labels and _is_remark(text[: labels[0].start()]):
        text = text[labels[0].start() :]
    label = _ANSWER.match(text.lstrip())
    if label is None:
        return text
    body: Sequence[str] = text.split("\n")
    for at, line in enumerate(body):
        if at and is_extra(line, body[:at], _REMARK):
            return "\n".join(body[:at]).rstrip()
    return text


def _is_remark(text: str) -> bool:
    """Return whether a text is a preamble, or begins with the label of a remark."""
    is_preamble = text.rstrip().endswith((":", "："))
    return is_preamble or _REMARK.match(text.lstrip()) is not None
