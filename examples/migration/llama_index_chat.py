"""A chat engine that answers a follow-up question."""

from llama_index_offline import Index, ScriptedLLM, WordVectors, compare, documents, read, splitter

QUESTIONS = ("Which river runs to the Mediterranean?", "And what did its floods do?")


def reply(prompt: str) -> str:
    if "standalone question" in prompt:
        return "Question: Which fields did the floods of the Nile make fertile?"
    return read(prompt)


def program(index_class: Index) -> list[str]:
    nodes = splitter(60).get_nodes_from_documents(documents())
    index = index_class(nodes, embed_model=WordVectors())
    engine = index.as_chat_engine(
        "condense_question", llm=ScriptedLLM(reply=reply), similarity_top_k=1
    )
    return [str(engine.chat(question)) for question in QUESTIONS]


if __name__ == "__main__":
    compare(program)
