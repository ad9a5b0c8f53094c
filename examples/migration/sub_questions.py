"""Send sub-questions to several query engines: first with LlamaIndex, then with nodekin."""

from itertools import pairwise

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import SubQuestionQueryEngine
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.tools import QueryEngineTool

from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphQueryEngine

PAGES = {
    "tea": "Green tea is steamed. Black tea is fermented. Both teas are leaves of one plant.\n\n"
    "Tea came to Europe in 1610, on Dutch ships. It was sold by chemists at first.",
    "coffee": "Coffee is roasted. It comes from beans, which are seeds of a cherry.\n\n"
    "Coffee houses opened in Vienna in 1685. Espresso is pressed through fine powder.",
    "river": "Rivers run to the sea. The Nile is 6,650 km long and crosses eleven countries.",
}


def load():
    return [Document(text=text, id_=name) for name, text in PAGES.items()]


class Letters(BaseEmbedding):
    """An embedding model that counts pairs of letters. Any embedding model can be used instead."""

    def _get_text_embedding(self, text):
        counts = [0.001] * 1024
        for one, two in pairwise(f" {text.lower()} "):
            counts[(ord(one) * 31 + ord(two)) % 1024] += 1
        return counts

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


class Scripted(CustomLLM):
    """A language model with scripted replies. Any language model can be used instead."""

    replies: dict[str, str]  # the replies, by words that occur in the prompt

    @property
    def metadata(self):
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **settings):
        reply = next(reply for words, reply in self.replies.items() if words in prompt)
        return CompletionResponse(text=reply)

    def stream_complete(self, prompt, formatted=False, **settings):
        yield self.complete(prompt)


QUESTION = "Which tea is fermented, and how long is the Nile?"
JSON_PLAN = """{"items": [{"sub_question": "Which tea is fermented?", "tool_name": "tea"},
 {"sub_question": "How long is the Nile?", "tool_name": "river"}]}"""
MODEL = Scripted(
    replies={
        "sub-questions in json": JSON_PLAN,
        "Simpler questions": "tea: Which tea is fermented?\nriver: How long is the Nile?",
        "Query: Which tea is fermented?": "Black tea.",
        "Query: How long is the Nile?": "6,650 km.",
        QUESTION: "Black tea; 6,650 km.",
    }
)


def tools(index_class):
    made = []
    for document in load():
        index = index_class.from_documents([document], embed_model=Letters())
        engine = index.as_query_engine(llm=MODEL, similarity_top_k=1)
        made.append(QueryEngineTool.from_defaults(engine, name=document.id_))
    return made


def before():
    engine = SubQuestionQueryEngine.from_defaults(
        tools(VectorStoreIndex),
        llm=MODEL,
        question_gen=LLMQuestionGenerator.from_defaults(llm=MODEL),
        use_async=False,
        verbose=False,
    )
    return str(engine.query(QUESTION))


def after():
    engine = NodeGraphQueryEngine.from_defaults(tools(NodeGraphIndex), MODEL)
    response = engine.query(QUESTION)
    print([(question, str(answer)) for question, answer in response.metadata["sub_qa"]])
    return str(response)


if __name__ == "__main__":
    print("LlamaIndex", before(), sep="\n  ")
    print("nodekin", after(), sep="\n  ")
