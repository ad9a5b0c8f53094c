"""Transforms and a reranker of one's own that node_groups.toml names: read before you trust it."""


def lines(text):
    """Split a document into its lines."""
    return text.splitlines()


def clauses(text):
    """Split a block at every Chinese full stop."""
    return text.split("。")


def length(text):
    """Return how long a sentence is, as a node."""
    return [str(len(text))]


class SharedCharacters:
    """Put first what has the most characters of the question in it: a stand-in for a model."""

    name = "shared characters"

    def rerank(self, results, query):
        """Return the results in another order."""
        return sorted(results, key=lambda result: -len({*query} & {*result.node.text}))
