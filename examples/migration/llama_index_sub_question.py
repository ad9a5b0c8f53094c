"""A sub-question query engine with tools.

``NodeGraphQuestionGenerator`` works with any language model.
"""

from llama_index.core.query_engine import SubQuestionQueryEngine
from llama_index.core.tools import QueryEngineTool
from llama_index_offline import Index, ScriptedLLM, WordVectors, compare, documents, read

from nodekin.adapters.llama_index import NodeGraphQuestionGenerator

QUESTION = "How long is the Nile, and when was the Golden Gate Bridge opened?"
PARTS = "rivers: How long is the Nile?\nbridges: When was the Golden Gate Bridge opened?"


def reply(prompt: str) -> str:
    if "Simpler questions:" in prompt:
        return PARTS
    return "6,650 km; in 1937." if QUESTION in prompt else read(prompt)


def program(index_class: Index) -> list[str]:
    llm, tools = ScriptedLLM(reply=reply), []
    for document in documents():
        index = index_class.from_documents([document], embed_model=WordVectors())
        engine = index.as_query_engine(llm=llm, similarity_top_k=1)
        tools.append(QueryEngineTool.from_defaults(engine, name=document.id_))
    engine = SubQuestionQueryEngine.from_defaults(
        tools,
        question_gen=NodeGraphQuestionGenerator(llm),
        llm=llm,
        use_async=False,
        verbose=False,
    )
    response = engine.query(QUESTION)
    return [str(response), *(n.text for n in response.source_nodes if n.text.startswith("Sub"))]


if __name__ == "__main__":
    compare(program)
