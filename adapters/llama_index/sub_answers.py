"""Tell LlamaIndex of the questions that were searched for on the way to an answer."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.query_engine.sub_question_query_engine import SubQuestionAnswerPair
from llama_index.core.question_gen.types import SubQuestion
from llama_index.core.schema import NodeWithScore, TextNode

from ...nodegraph.llm.language import language_of
from .found import Found
from .nodes import to_node_with_score

TOOL = "nodekin"
"""The name of the tool that sub-questions are asked of, for handlers that show it."""
_SAID = {"zh": "问题：{question}\n答案：{answer}", "en": "Question: {question}\nAnswer: {answer}"}


def told_nodes(query: str, found: Found) -> list[NodeWithScore]:
    """Return the short answers as texts for a synthesizer, which reads nothing but nodes."""
    said = _SAID[language_of(query)]
    return [
        NodeWithScore(node=TextNode(text=said.format(question=each.question, answer=each.answer)))
        for each in found.sub_answers or ()
        if each.answer is not None
    ]


def facts_of(found: Found) -> dict[str, Any]:
    """Return what a response's metadata tells of how its sources were found."""
    facts: dict[str, Any] = {}
    if found.sub_answers is not None:
        facts["sub_qa"] = [
            (each.question, Response(each.answer, [to_node_with_score(r) for r in each.results]))
            for each in found.sub_answers
        ]
    if found.errors:
        facts["errors"] = [
            {"question": question, "error": error} for question, error in found.errors
        ]
    if found.ended is not None:
        facts["ended"] = found.ended
    return facts


def tell_sub_questions(callback_manager: CallbackManager, found: Found) -> None:
    """Tell callback handlers of each sub-question, as LlamaIndex's own engine does."""
    for each in found.sub_answers or ():
        asked = SubQuestion(sub_question=each.question, tool_name=TOOL)
        begun: dict[str, Any] = {EventPayload.SUB_QUESTION: SubQuestionAnswerPair(sub_q=asked)}
        with callback_manager.event(CBEventType.SUB_QUESTION, payload=begun) as event:
            pair = SubQuestionAnswerPair(
                sub_q=asked,
                answer=each.answer,
                sources=[to_node_with_score(result) for result in each.results],
            )
            event.on_end(payload={EventPayload.SUB_QUESTION: pair})
