"""Sub-questions over query engine tools."""

from llama_index.core import VectorStoreIndex
from llama_index.core.query_engine import SubQuestionQueryEngine
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.tools import QueryEngineTool
from llama_index_offline import ScriptedLLM, WordVectors, documents, read

from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphQueryEngine

QUESTION = "How long is the Nile, and when was the Golden Gate Bridge opened?"
PARTS = {"rivers": "How long is the Nile?", "bridges": "When was the Golden Gate Bridge opened?"}


def reply(prompt: str) -> str:
    """Be a model: take the question apart in the form that is requested, or read."""
    if '"items"' in prompt:
        items = (f'{{"sub_question": "{q}", "tool_name": "{t}"}}' for t, q in PARTS.items())
        return f'```json\n{{"items": [{", ".join(items)}]}}\n```'
    if "Simpler questions:" in prompt:
        return "\n".join(f"{tool}: {question}" for tool, question in PARTS.items())
    if QUESTION in prompt:
        return "6,650 km; in 1937." if "6,650" in prompt and "1937" in prompt else "Unknown."
    return read(prompt)


def tools(kind: type) -> list[QueryEngineTool]:
    """Make a tool of each document."""
    return [
        QueryEngineTool.from_defaults(
            kind.from_documents([document], embed_model=WordVectors()).as_query_engine(
                llm=ScriptedLLM(reply=reply), similarity_top_k=1
            ),
            name=document.id_,
            description=f"All about {document.id_}",
        )
        for document in documents()
    ]


def before() -> list[str]:
    """Answer by LlamaIndex alone."""
    llm = ScriptedLLM(reply=reply)
    engine = SubQuestionQueryEngine.from_defaults(
        query_engine_tools=tools(VectorStoreIndex),
        question_gen=LLMQuestionGenerator.from_defaults(llm=llm),
        llm=llm,
        use_async=False,
        verbose=False,
    )
    response = engine.query(QUESTION)
    asked = [n.text for n in response.source_nodes if n.text.startswith("Sub question")]
    return [str(response), *asked]


def after() -> list[str]:
    """Answer with nodekin: no question generator is needed, failures are in the metadata."""
    engine = NodeGraphQueryEngine.from_defaults(tools(NodeGraphIndex), ScriptedLLM(reply=reply))
    response = engine.query(QUESTION)
    assert "errors" not in response.metadata
    asked = [f"Sub question: {q}\nResponse: {a}" for q, a in response.metadata["sub_qa"]]
    return [str(response), *asked]


if __name__ == "__main__":
    print("LlamaIndex", *before(), sep="\n  ")
    print("nodekin", *after(), sep="\n  ")
