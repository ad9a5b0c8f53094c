"""Read the yes-or-no decisions in a JSON value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .chinese_script import chinese_pattern
from .json_values import value_of
from .verdict_lines import MARK, NumberedVerdict, decide, listed_verdicts, number_of
from .verdict_words import read_verdict

_VERDICT_KEYS = tuple(
    """verdict verdicts decision judgment judgement is_supported supported support relevant
    is_relevant relevance helpful is_helpful correct is_correct entailed is_entailed grounded
    is_grounded faithful is_true conclusion ruling label answer result response value yes_no
    yes/no status evaluation assessment classification outcome
    判断 结论 结果 判定 裁决 是否支持 支持 是否相关 是否正确 答案 回答
    判断结果""".split()
)

_NUMBER_KEYS = tuple(
    """number id no nr # index statement_number statement_id statement_no claim_id statement claim
    编号 序号 陈述""".split()
)

_REASON_KEYS = tuple(
    """quote reason evidence explanation rationale justification quotation
    引文 原文 理由 依据 解释 原因""".split()
)

_LIST_KEYS = tuple(
    """verdicts verdict supported decision labels label
    results statements claims decisions judgments judgements answers evaluations items
    output response answer result arguments parameters judgment
    判断 结果 陈述 结论 列表""".split()
)


def verdicts_of_value(value: Any) -> list[NumberedVerdict]:
    """Return the decisions in a JSON value."""
    if isinstance(value, list):
        return _of_list(value)
    if isinstance(value, Mapping):
        return _of_object(value)
    return []


def _of_list(values: Sequence[Any]) -> list[NumberedVerdict]:
    if _is_binary(values):
        values = [value == 1 for value in values]
    elif _is_binary([_said(value) for value in values]):  # RAGAS asks for these numbers.
        values = [{**value, "verdict": _said(value) == 1} for value in values]
    verdicts: list[NumberedVerdict] = []
    for value in values:
        if isinstance(value, list | Mapping):
            verdicts += verdicts_of_value(value)
        else:
            verdicts.append(_of_scalar(value))
    return verdicts


def _said(value: Any) -> Any:
    """Return the decision in an object, or None if the value is not an object."""
    if not isinstance(value, Mapping):
        return None
    return value_of(value, ("verdict",))


def _is_binary(values: Iterable[Any]) -> bool:
    """Return whether numbers are decisions. A list such as [1] may be a list of statements."""
    kept = [*values]
    if any(type(value) is not int or value not in (0, 1) for value in kept):
        return False
    return 0 in kept or len(kept) > 1


def _of_scalar(value: Any, number: int | None = None) -> NumberedVerdict:
    """Return the decision in a text or a boolean. Words such as "1. " are its number."""
    if not isinstance(value, str):
        return NumberedVerdict(number, read_verdict(value)[0], "")
    mark = MARK.match(value)
    if mark is not None and number is None:
        return NumberedVerdict(number_of(mark["number"]), *decide([value[mark.end() :]]))
    return NumberedVerdict(number, *decide([value]))


def _of_object(record: Mapping[Any, Any]) -> list[NumberedVerdict]:
    """Return the decisions in an object, which is one decision or contains several decisions."""
    grouped = _grouped(record)
    if grouped:
        return grouped
    said = value_of(record, _VERDICT_KEYS)
    if isinstance(said, str | bool) and not _is_list_text(said):
        quoted = value_of(record, _REASON_KEYS)
        yes, reason = decide([said]) if isinstance(said, str) else (said, "")
        number = number_of(value_of(record, _NUMBER_KEYS))
        return [NumberedVerdict(number, yes, _text(quoted) or reason)]
    inner = value_of(record, _LIST_KEYS)
    if isinstance(inner, list | Mapping):
        return verdicts_of_value(inner)
    if isinstance(inner, str):
        return listed_verdicts(inner) or []
    return _of_members(record)


def _is_list_text(said: object) -> bool:
    return isinstance(said, str) and listed_verdicts(said) is not None


_KEY_NUMBER = chinese_pattern(
    r"\W*(?:statement|claim|sentence|verdict|answer|item|question|s|c|q|v|no|number|第|陈述|结论|编号)?"
    r"[\s_#.-]{0,3}(\d{1,3}|[一二三四五六七八九十]{1,3})(?:条)?\W*(?![\d])",
    re.I,
)


def _of_members(record: Mapping[Any, Any]) -> list[NumberedVerdict]:
    """Return the decisions in an object whose keys are the numbers or texts of statements."""
    if _is_binary(record.values()):
        record = {key: value == 1 for key, value in record.items()}
    numbered = [_KEY_NUMBER.match(str(key)) for key in record]
    is_numbered = all(match is not None for match in numbered)
    verdicts: list[NumberedVerdict] = []
    for key, value, match in zip(record, record.values(), numbered, strict=True):
        number = number_of(match[1]) if match is not None and is_numbered else None
        if isinstance(value, list | Mapping):
            inner = verdicts_of_value(value)
            if is_numbered and len(inner) == 1:
                inner = [inner[0]._replace(number=number)]
            verdicts += inner
        elif is_numbered or len(str(key).split()) > 1 or len(str(key)) > _MAX_KEY:
            verdicts.append(_of_scalar(value, number))
    return verdicts


_MAX_KEY = 15  # maximum number of characters of a key that is not a statement

_GROUPS = (
    ("supported", "yes", "true", "correct", "支持", "是", "正确", "正确"),
    ("unsupported", "not_supported", "no", "false", "incorrect", "不支持", "否", "错误", "错误"),
)


def _grouped(record: Mapping[Any, Any]) -> list[NumberedVerdict]:
    """Return the decisions in an object with the numbers of supported and other statements."""
    verdicts: list[NumberedVerdict] = []
    for yes, keys in ((True, _GROUPS[0]), (False, _GROUPS[1])):
        numbers = value_of(record, keys)
        if not isinstance(numbers, list) or not all(type(item) is int for item in numbers):
            return []
        verdicts += [NumberedVerdict(number, yes, "") for number in numbers]
    return verdicts


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
