"""Parsing what models write: every parser is a function on texts."""

from typing import TYPE_CHECKING

from ...lazy_names import lazy_names

if TYPE_CHECKING:
    from .cleaning import check_answer, clean, is_no_answer
    from .extractions import PARSERS
    from .final_answer import NO_ANSWER_MARKS, FinalAnswer, FinalAnswerParser, parse_final_answer
    from .free_text import is_unknown, parse_partial_answer, parse_passage
    from .json_values import json_at, parse_answer, parse_json, texts_in, value_of
    from .lines import (
        ANSWER_LABEL,
        QUESTION_KEYS,
        label_pattern,
        normalize,
        split_bullet,
        strip_markup,
        unique,
    )
    from .queries import parse_phrasings, parse_query, parse_routes, parse_sub_questions
    from .questions import MAX_QUERY_LENGTH
    from .tool_questions import ToolQuestions, parse_tool_questions
    from .verdict import is_yes, parse_verdict
    from .verdicts import Verdict, parse_numbers, parse_verdicts
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".cleaning": "check_answer clean is_no_answer",
            ".extractions": "PARSERS",
            ".final_answer": "NO_ANSWER_MARKS FinalAnswer FinalAnswerParser parse_final_answer",
            ".free_text": "is_unknown parse_partial_answer parse_passage",
            ".json_values": "json_at parse_answer parse_json texts_in value_of",
            ".lines": (
                "ANSWER_LABEL QUESTION_KEYS label_pattern normalize split_bullet strip_markup "
                "unique"
            ),
            ".queries": "parse_phrasings parse_query parse_routes parse_sub_questions",
            ".questions": "MAX_QUERY_LENGTH",
            ".tool_questions": "ToolQuestions parse_tool_questions",
            ".verdict": "is_yes parse_verdict",
            ".verdicts": "Verdict parse_numbers parse_verdicts",
        },
    )

__all__ = [
    "ANSWER_LABEL",
    "MAX_QUERY_LENGTH",
    "NO_ANSWER_MARKS",
    "PARSERS",
    "QUESTION_KEYS",
    "FinalAnswer",
    "FinalAnswerParser",
    "ToolQuestions",
    "Verdict",
    "check_answer",
    "clean",
    "is_no_answer",
    "is_unknown",
    "is_yes",
    "json_at",
    "label_pattern",
    "normalize",
    "parse_answer",
    "parse_final_answer",
    "parse_json",
    "parse_numbers",
    "parse_partial_answer",
    "parse_passage",
    "parse_phrasings",
    "parse_query",
    "parse_routes",
    "parse_sub_questions",
    "parse_tool_questions",
    "parse_verdict",
    "parse_verdicts",
    "split_bullet",
    "strip_markup",
    "texts_in",
    "unique",
    "value_of",
]
