"""A collection of all functions that parse the answers of language models."""

from collections.abc import Callable
from typing import Any

from nodekin.nodegraph.models.output.answer_text import clean, is_no_answer, normalize
from nodekin.nodegraph.models.output.bullets import split_bullet
from nodekin.nodegraph.models.output.extracts import PARSERS
from nodekin.nodegraph.models.output.free_text import (
    is_unknown,
    parse_final_answer,
    parse_partial_answer,
)
from nodekin.nodegraph.models.output.imagined_passage import parse_passage
from nodekin.nodegraph.models.output.items import read_items
from nodekin.nodegraph.models.output.json_values import find_json
from nodekin.nodegraph.models.output.lines import strip_markup
from nodekin.nodegraph.models.output.queries import (
    parse_phrasings,
    parse_query,
    parse_sub_questions,
)
from nodekin.nodegraph.models.output.questions import split_questions
from nodekin.nodegraph.models.output.routes import parse_route
from nodekin.nodegraph.models.output.tool_questions import parse_tool_questions
from nodekin.nodegraph.models.output.verdict_words import is_yes, read_verdict
from nodekin.retrievers.answers.ranked_answer import parse_ranked_answer
from nodekin.retrievers.evaluation.judges import parse_verdicts
from nodekin.retrievers.strategies.step_reader import parse_step

READERS: dict[str, Callable[[str], Any]] = {
    "clean": clean,
    "is_no_answer": is_no_answer,
    "is_unknown": is_unknown,
    "is_yes": is_yes,
    "read_verdict": read_verdict,
    "find_json": find_json,
    "normalize": normalize,
    "parse_final_answer": parse_final_answer,
    "read_items": read_items,
    "parse_partial_answer": parse_partial_answer,
    "parse_passage": lambda text: parse_passage(text, "What is tea?"),
    "parse_phrasings": lambda text: parse_phrasings(text, "What is tea?", 5),
    "parse_query": lambda text: parse_query(text, "What is tea?"),
    "parse_route": lambda text: parse_route(text, ["docs", "web"]),
    "parse_sub_questions": lambda text: parse_sub_questions(text, "What is tea?", 5),
    "parse_tool_questions": lambda text: parse_tool_questions(text, ["docs", "what"]),
    "parse_verdicts": lambda text: parse_verdicts(text, 3),
    "one of parse_verdicts": lambda text: parse_verdicts(text, 1),
    "parse_ranked_answer": parse_ranked_answer,
    "split_bullet": split_bullet,
    "split_questions": split_questions,
    "strip_markup": strip_markup,
    "parse_step": parse_step,
    **{parser.__name__: parser for parser in PARSERS.values()},
}
