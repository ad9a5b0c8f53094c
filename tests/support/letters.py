"""An embedding model that counts letters."""

from langchain_core.embeddings import Embeddings


class Letters(Embeddings):
    """An embedding model that counts a few Latin and Chinese letters, and records its calls."""

    ALPHABET = "aeiourst茶河绿红"

    def __init__(self):
        self.passages = []
        self.queries = []
        self.async_queries = []

    def __getstate__(self):
        return {}

    def __setstate__(self, state):
        self.__init__()

    def vector(self, text):
        return [float(text.count(letter)) for letter in self.ALPHABET] + [0.01]

    def embed_documents(self, texts):
        self.passages += texts
        return [self.vector(text) for text in texts]

    def embed_query(self, text):
        self.queries.append(text)
        return self.vector(text)

    async def aembed_query(self, text):
        self.async_queries.append(text)
        return self.vector(text)
