"""All functions that read what models wrote, by name."""

from collections.abc import Callable
from typing import Any

from nodekin.nodegraph.models import output
from nodekin.nodegraph.models.output.extractions import PARSERS
from nodekin.nodegraph.models.output.final_answer import FinalAnswerParser
from nodekin.nodegraph.models.output.lines import parse_lines
from nodekin.nodegraph.models.output.questions import split_questions
from nodekin.retrievers.answers.map_rerank import parse_ranked_answer
from nodekin.retrievers.strategies.step_reader import StepReader
from nodekin.retrievers.strategies.step_roles import NextQuestion, StepAnswer


def streamed(text: str) -> None:
    parser = FinalAnswerParser()
    for begin in range(0, len(text), 3):
        parser.feed(text[begin : begin + 3])
    parser.close()


def silent(prompt: str) -> str:
    raise AssertionError


READERS: dict[str, Callable[[str], Any]] = {
    "clean": output.clean,
    "check_answer": output.check_answer,
    "is_no_answer": output.is_no_answer,
    "is_unknown": output.is_unknown,
    "is_yes": output.is_yes,
    "json_at": output.json_at,
    "normalize": output.normalize,
    "parse_answer": output.parse_answer,
    "parse_final_answer": output.parse_final_answer,
    "parse_json": output.parse_json,
    "parse_lines": lambda text: list(parse_lines(text)),
    "parse_partial_answer": output.parse_partial_answer,
    "parse_passage": lambda text: output.parse_passage(text, "What is tea?"),
    "parse_phrasings": lambda text: output.parse_phrasings(text, "What is tea?", 5),
    "parse_query": lambda text: output.parse_query(text, "What is tea?"),
    "parse_routes": lambda text: output.parse_routes(text, ["docs", "web"]),
    "parse_sub_questions": lambda text: output.parse_sub_questions(text, "What is tea?", 5),
    "parse_tool_questions": lambda text: output.parse_tool_questions(text, ["docs", "what"]),
    "parse_verdict": output.parse_verdict,
    "parse_verdicts": lambda text: output.parse_verdicts(text, 3),
    "one of parse_verdicts": lambda text: output.parse_verdicts(text, 1),
    "parse_numbers": lambda text: output.parse_numbers(text, 3),
    "parse_ranked_answer": parse_ranked_answer,
    "split_bullet": output.split_bullet,
    "split_questions": split_questions,
    "streamed": streamed,
    "strip_markup": output.strip_markup,
    "StepReader": StepReader(silent).parse,
    "StepAnswer": StepAnswer(silent).parse,
    "NextQuestion": NextQuestion(silent).parse,
    **{f"PARSERS[{task}]": parser for task, parser in PARSERS.items()},
}
