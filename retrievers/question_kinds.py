"""Determine from the question words whether a question asks for a number or for a reason."""

from __future__ import annotations

from typing import NamedTuple

from ..nodegraph.lazy_names import lazy_pattern

_NUMBER = lazy_pattern(
    r"""(?ix)
    # Chinese
    多少 | 几[个名年月日条座人岁次] | 多[长高大远久重] | 哪一?年 | 什么时候 | 何时 | 时间 | 日期
    | \b(?:
        # English
        how\ (?:many|much|long|old|far|high|tall|large|big) | when | (?:what|which)\ (?:year|date)
        # German
        | wie\ ?(?:viele?|lange|alt|hoch|groß|weit) | wann | welche[mns]?\ (?:jahr|datum)
        # Russian
        | сколько | когда | каком\ году
        # Vietnamese
        | bao\ nhiêu | khi\ nào | năm\ nào
        # Arabic
        | كم | متى
    )\b
    """
)
_REASON = lazy_pattern(
    r"""(?ix)
    # Chinese
    为什么 | 为何 | 原因 | 理由
    | \b(?:
        # English
        why | reasons?
        # German
        | warum | weshalb
        # Russian
        | почему | зачем
        # Vietnamese
        | tại\ sao | vì\ sao
        # Arabic
        | لماذا
    )\b
    """
)
# Digits, or a Chinese number with a unit of time or a measure word, such as 三年.
_NUMERAL = lazy_pattern(r"\d|[一二三四五六七八九十百千万两]+[年月日个名人座岁次]")


class QuestionKind(NamedTuple):
    """The kind of information that a question asks for.

    Question words of Chinese, English, German, Russian, Vietnamese and Arabic are recognized.

    Attributes:
        asks_number: Whether the question asks for a number, a date or a time.
        asks_reason: Whether the question asks for a reason.
    """

    asks_number: bool
    asks_reason: bool

    @classmethod
    def of(cls, question: str) -> QuestionKind:
        """Classify a question by the words that it contains.

        Example:
            >>> QuestionKind.of("How high is the tower?")
            QuestionKind(asks_number=True, asks_reason=False)
            >>> QuestionKind.of("猴面包树为什么叫笨蛋水果？").asks_reason
            True
        """
        return cls(
            asks_number=_NUMBER.search(question) is not None,
            asks_reason=_REASON.search(question) is not None,
        )


def has_numeral(text: str, start: int, end: int) -> bool:
    """Return whether a span of a text contains digits, or a Chinese number followed by a unit."""
    return _NUMERAL.search(text, start, end) is not None
