"""What models say, and how it is read: every reader is a function on texts."""

from .cleaning import check_answer, clean, json_at, read_json, says_none
from .extractions import PARSERS
from .final_answer import MARKS, Said, SaidReader, read_said
from .items import ANSWER, QUESTION_KEYS, bare, each_once, item_of, normal, read, strings
from .prose import read_partial, read_passage
from .queries import LONGEST_QUERY, read_phrasings, read_query, read_routes, read_sub_questions
from .verdict import read_verdict, says_yes

__all__ = [
    "ANSWER",
    "LONGEST_QUERY",
    "MARKS",
    "PARSERS",
    "QUESTION_KEYS",
    "Said",
    "SaidReader",
    "bare",
    "check_answer",
    "clean",
    "each_once",
    "item_of",
    "json_at",
    "normal",
    "read",
    "read_json",
    "read_partial",
    "read_passage",
    "read_phrasings",
    "read_query",
    "read_routes",
    "read_said",
    "read_sub_questions",
    "read_verdict",
    "says_none",
    "says_yes",
    "strings",
]
