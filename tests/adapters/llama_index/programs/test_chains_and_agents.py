"""Engines, routers and agents with one class exchanged."""

import asyncio
from typing import Any

import pytest
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.query_engine import (
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from support.llama_index_programs import QUESTION, Kit, answering, check, described


def postprocessed_engine(kit: Kit) -> Any:
    engine = RetrieverQueryEngine.from_args(
        kit.from_documents().as_retriever(similarity_top_k=4),
        llm=answering(),
        node_postprocessors=[
            SimilarityPostprocessor(similarity_cutoff=0.2),
            LongContextReorder(),
        ],
    )
    response = engine.query(QUESTION)
    return str(response), described(response.source_nodes), sorted(response.metadata)


def fusion(kit: Kit) -> Any:
    index = kit.from_documents()
    retriever = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=3), index.as_retriever(similarity_top_k=1)],
        llm=answering("Which tea keeps?\nWhat is steamed?"),
        num_queries=3,
        similarity_top_k=3,
        mode="reciprocal_rerank",
        use_async=False,
    )
    return described(retriever.retrieve(QUESTION))


def router(kit: Kit) -> Any:
    index = kit.from_documents()
    model = answering('[{"choice": 2, "reason": "tea"}]')
    tools = [
        QueryEngineTool.from_defaults(index.as_query_engine(llm=answering(name)), description=name)
        for name in ("rivers", "tea")
    ]
    engine = RouterQueryEngine(LLMSingleSelector.from_defaults(model), tools, llm=answering())
    response = engine.query(QUESTION)
    return str(response), described(response.source_nodes)


def sub_questions(kit: Kit) -> Any:
    engine = kit.from_documents().as_query_engine(llm=answering())
    plan = (
        '```json\n{"items": [{"sub_question": "What is fermented?", "tool_name": "tea"},'
        ' {"sub_question": "What is steamed?", "tool_name": "tea"}]}\n```'
    )
    sub = SubQuestionQueryEngine.from_defaults(
        [QueryEngineTool.from_defaults(engine, name="tea", description="on tea")],
        llm=answering("Black."),
        question_gen=LLMQuestionGenerator.from_defaults(llm=answering(plan)),
        use_async=False,
        verbose=False,
    )
    response = sub.query(QUESTION)
    return str(response), [result.text for result in response.source_nodes]


def retriever_tool(kit: Kit) -> Any:
    retriever = kit.from_documents().as_retriever(similarity_top_k=2)
    tool = RetrieverTool.from_defaults(retriever, description="drinks")
    output = tool.call(QUESTION)
    return output.content, described(output.raw_output)


def agent(kit: Kit) -> Any:
    engine = kit.from_documents().as_query_engine(llm=answering(), similarity_top_k=1)
    tool = QueryEngineTool.from_defaults(engine, name="drinks", description="on drinks")

    def reply(prompt: str) -> str:
        if "Observation:" in prompt.rpartition("user: ")[2]:
            return "Thought: I can answer.\nAnswer: Black tea."
        return f'Thought: I look.\nAction: drinks\nAction Input: {{"input": "{QUESTION}"}}'

    async def run() -> Any:
        made = ReActAgent(tools=[tool], llm=answering(reply), streaming=False)
        return await made.run(QUESTION)

    output = asyncio.run(run())
    calls = [(call.tool_name, str(call.tool_output)) for call in output.tool_calls]
    return str(output), calls


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from LlamaIndex's workflows
@pytest.mark.parametrize(
    "program",
    [postprocessed_engine, fusion, router, sub_questions, retriever_tool, agent],
    ids=lambda program: program.__name__,
)
def test_program_has_equal_results_and_events(program: Any, monkeypatch: Any) -> None:
    check(program, monkeypatch)
