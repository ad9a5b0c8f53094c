"""Query engines: ``index.as_query_engine``, sub-questions, steps, and what holds engines."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import PromptTemplate, QueryBundle, get_response_synthesizer
from llama_index.core.base.response.schema import Response, StreamingResponse
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RouterQueryEngine, TransformQueryEngine
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool, ToolMetadata
from support.llama_index_models import ScriptedLLM

QUESTION = "Which tea is fermented?"


def topics(response: Any) -> list[str]:
    return [source.metadata["topic"] for source in response.source_nodes]


@pytest.mark.parametrize(
    "mode", ["compact", "refine", "tree_summarize", "simple_summarize", "accumulate"]
)
async def test_response_modes(index: Any, llm: ScriptedLLM, mode: str) -> None:
    engine = index.as_query_engine(llm=llm, response_mode=mode)
    for response in (engine.query(QUESTION), await engine.aquery(QueryBundle(QUESTION))):
        assert isinstance(response, Response)
        assert "It is." in str(response)
        assert topics(response)[0] == "tea"
        assert any("Black tea is fermented." in prompt for prompt in llm.prompts)


@pytest.mark.parametrize("mode", ["no_text", "context_only"])
def test_modes_without_a_model(index: Any, mode: str) -> None:
    response = index.as_query_engine(response_mode=mode).query(QUESTION)
    assert topics(response)[0] == "tea"
    assert ("Black tea is fermented." in str(response)) == (mode == "context_only")


def test_response_has_the_metadata_of_its_nodes(index: Any, llm: ScriptedLLM) -> None:
    response = index.as_query_engine(llm=llm).query(QUESTION)
    for source in response.source_nodes:
        assert response.metadata[source.node_id] == source.metadata


def test_streaming(index: Any, llm: ScriptedLLM) -> None:
    response = index.as_query_engine(llm=llm, streaming=True).query(QUESTION)
    assert isinstance(response, StreamingResponse)
    assert "".join(response.response_gen) == "It is."
    assert topics(response)[0] == "tea"


def test_the_model_of_the_settings_is_used(index: Any) -> None:
    assert str(index.as_query_engine().query(QUESTION)) == "It is."


def test_prompts_are_read_and_replaced(index: Any, llm: ScriptedLLM) -> None:
    own = PromptTemplate("Context: {context_str}\nBriefly: {query_str}")
    engine = index.as_query_engine(llm=llm, text_qa_template=own)
    engine.query(QUESTION)
    assert llm.prompts[-1].endswith(f"Briefly: {QUESTION}")
    name = "response_synthesizer:text_qa_template"
    assert engine.get_prompts()[name].get_template() == own.get_template()
    engine.update_prompts({name: PromptTemplate("{context_str} Now: {query_str}")})
    engine.query(QUESTION)
    assert llm.prompts[-1].endswith(f"Now: {QUESTION}")


def test_postprocessors_are_applied(index: Any, llm: ScriptedLLM) -> None:
    never = SimilarityPostprocessor(similarity_cutoff=99.0)
    response = index.as_query_engine(llm=llm, node_postprocessors=[never]).query(QUESTION)
    assert response.source_nodes == []


def test_an_engine_retrieves_and_synthesizes(index: Any, llm: ScriptedLLM) -> None:
    engine = index.as_query_engine(llm=llm)
    nodes = engine.retrieve(QueryBundle(QUESTION))
    assert nodes[0].metadata["topic"] == "tea"
    response = engine.synthesize(QueryBundle(QUESTION), nodes[:1])
    assert (str(response), topics(response)) == ("It is.", ["tea"])


def test_an_engine_of_a_retriever_and_a_synthesizer(
    kind: Any, index: Any, llm: ScriptedLLM
) -> None:
    retriever = index.as_retriever(similarity_top_k=1)
    engine = kind.engine.from_args(retriever, llm=llm)
    assert topics(engine.query(QUESTION)) == ["tea"]
    synthesizer = get_response_synthesizer(llm=llm, response_mode="compact")
    engine = kind.engine(retriever, response_synthesizer=synthesizer)
    assert str(engine.query(QUESTION)) == "It is."


def test_nothing_was_found(kind: Any, llm: ScriptedLLM) -> None:
    response = kind.index.from_documents([]).as_query_engine(llm=llm).query(QUESTION)
    assert (str(response), response.source_nodes) == ("Empty Response", [])


def test_events_of_a_query(index: Any, llm: ScriptedLLM, events: list[str]) -> None:
    index.as_query_engine(llm=llm).query(QUESTION)
    for stage in ("Query", "Retrieval", "Synthesize"):
        assert events.count(f"{stage}StartEvent") == events.count(f"{stage}EndEvent") == 1


# In LlamaIndex's own engines and tools


def tools(kind: Any, documents: list[Any], llm: ScriptedLLM) -> list[QueryEngineTool]:
    return [
        QueryEngineTool(
            query_engine=kind.index.from_documents([document]).as_query_engine(llm=llm),
            metadata=ToolMetadata(name=document.id_, description=f"All about {document.id_}"),
        )
        for document in documents
    ]


async def test_it_is_a_tool(kind: Any, documents: list[Any], llm: ScriptedLLM) -> None:
    (tool, *_) = tools(kind, documents, llm)
    output = tool.call(input=QUESTION)
    assert output.content == "It is."
    assert topics(output.raw_output) == ["tea"]
    assert (await tool.acall(input=QUESTION)).content == "It is."


def test_a_router_chooses_it(kind: Any, documents: list[Any], llm: ScriptedLLM) -> None:
    choosing = ScriptedLLM(answer='[{"choice": 2, "reason": "rivers"}]', prompts=[])
    selector = LLMSingleSelector.from_defaults(llm=choosing)
    router = RouterQueryEngine(selector, tools(kind, documents, llm), llm=llm)
    assert topics(router.query("How long is the Nile?")) == ["rivers"]


def test_a_query_is_transformed_before_it(index: Any, llm: ScriptedLLM) -> None:
    llm.answer = "The Nile is 6,650 km long and runs to the Mediterranean sea."
    hyde = HyDEQueryTransform(llm=llm, include_original=False)
    engine = TransformQueryEngine(index.as_query_engine(llm=llm, similarity_top_k=1), hyde)
    assert topics(engine.query("How long is the Nile?")) == ["rivers"]


def test_sub_questions_over_tools(kind: Any, documents: list[Any], llm: ScriptedLLM) -> None:
    parts = {"tea": QUESTION, "rivers": "How long is the Nile?"}

    def reply(prompt: str) -> str:
        if "Simpler questions:" in prompt:
            return "\n".join(f"{tool}: {question}" for tool, question in parts.items())
        if "Sub question:" in prompt or "sub-question" in prompt.lower():
            items = (f'{{"sub_question": "{q}", "tool_name": "{t}"}}' for t, q in parts.items())
            return f'```json\n{{"items": [{", ".join(items)}]}}\n```'
        return "It is."

    llm.answer = reply
    settings: dict[str, Any] = {"llm": llm}
    if kind.sub_questions.__module__.startswith("llama_index"):
        settings["question_gen"] = LLMQuestionGenerator.from_defaults(llm=llm)
        settings["use_async"] = False
    engine = kind.sub_questions.from_defaults(
        query_engine_tools=tools(kind, documents, llm), **settings
    )
    response = engine.query("Which tea is fermented, and how long is the Nile?")
    assert str(response)
    assert {"tea", "rivers"} <= {source.metadata.get("topic") for source in response.source_nodes}
