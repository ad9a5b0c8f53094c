"""Documents, an embedding model and scripted language models for programs that run offline.

They can be replaced with any LlamaIndex models.
"""

import re
from collections.abc import Callable

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.node_parser import SentenceSplitter

from nodekin.adapters.llama_index import NodeGraphIndex

Index = type[VectorStoreIndex] | type[NodeGraphIndex]

TEXTS = {
    "tea": "Green tea is steamed soon after the harvest. Its leaves stay green for about a year. "
    "Black tea is fermented. It keeps for many years. Oolong is half fermented, and is served in "
    "small cups. White tea is dried in the sun, and is neither rolled nor roasted. Tea came to "
    "Europe by sea in the seventeenth century. The first ships brought it to Amsterdam from "
    "Java. In London it was sold in coffee houses, and taxed by the gallon. Clippers raced each "
    "other home with the first leaves of the season, and the fastest of them was paid a prize.",
    "rivers": "The Nile is 6,650 km long. It runs to the Mediterranean. Its floods made the "
    "fields of Egypt fertile every summer. The Amazon is 6,400 km long. It carries more water "
    "than any other river. No bridge crosses the Amazon between its source and the sea, since "
    "the banks are soft and few roads lead there. Some rivers dry out in summer. Others run "
    "below the ground for many miles, and come to light again in springs. The Danube passes "
    "through ten countries, and through four of their capitals on its way to the Black Sea.",
    "bridges": "The Golden Gate Bridge was opened in 1937. It is painted in orange. The Humber "
    "Bridge was the longest of all for sixteen years. The Romans built bridges of stone, and some "
    "of them still carry carts and cars. Bridges of rope cross the gorges of the Andes, and are "
    "woven anew by the villages on both sides each June. The Akashi bridge in Japan was planned "
    "for trains, too, and was built for cars alone. An earthquake moved its towers apart by a "
    "metre before it was finished. Wind brought down a bridge at Tacoma in 1940.",
}


def compare(program: Callable[[Index], list[str]]) -> None:
    """Run a program with a LlamaIndex index and with a nodekin index, and print both results."""
    for index_class in (VectorStoreIndex, NodeGraphIndex):
        print(index_class.__name__, *program(index_class), sep="\n  ")


def splitter(size: int) -> SentenceSplitter:
    """Return a sentence splitter that preserves the spaces between sentences."""
    return SentenceSplitter(chunk_size=size, chunk_overlap=0, chunking_tokenizer_fn=with_spaces)


def documents() -> list[Document]:
    """Return one document for each topic."""
    return [Document(text=text, id_=name, metadata={"topic": name}) for name, text in TEXTS.items()]


def with_spaces(text: str) -> list[str]:
    """Split a text into sentences, including their trailing spaces, without using NLTK."""
    return re.split(r"(?<=[.!?]\s)", text)


class WordVectors(BaseEmbedding):
    """A bag-of-words embedding model."""

    def _get_text_embedding(self, text: str) -> list[float]:
        vector = [0.01] * 97
        for word in re.findall(r"\w+", text.lower()):
            vector[sum(ord(letter) * at for at, letter in enumerate(word, 1)) % 97] += 1
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class ScriptedLLM(CustomLLM):
    """A language model whose answers are computed by a function of the prompt."""

    reply: Callable[[str], str]

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(
        self, prompt: str, formatted: bool = False, **kwargs: object
    ) -> CompletionResponse:
        return CompletionResponse(text=self.reply(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs):
        yield CompletionResponse(text=self.reply(prompt), delta=self.reply(prompt))


def read(prompt: str) -> str:
    """Answer with the sentence of the prompt that shares the most words with the question."""
    asked = re.search(r"(?:Query|Question): (.*)", prompt)
    words = {word for word in re.findall(r"\w+", asked[1].lower()) if len(word) > 4}
    sentences = [s for text in TEXTS.values() for s in re.findall(r"[^.]+\.", text) if s in prompt]
    best = max(sentences, key=lambda s: sum(word in s.lower() for word in words), default="None.")
    return best.strip()
