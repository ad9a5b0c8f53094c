"""An embedding model that counts words and records the queries it embeds."""

WORDS = ["tea", "river", "book", "茶"]


class CountingModel:
    def __init__(self):
        self.asked = []

    def embed(self, texts):
        return [[0.1, *(float(text.lower().count(word)) for word in WORDS)] for text in texts]

    def embed_queries(self, texts):
        self.asked.append(list(texts))
        if any("poison" in text for text in texts):
            raise ValueError("the model can't embed poison")
        return self.embed(texts)
