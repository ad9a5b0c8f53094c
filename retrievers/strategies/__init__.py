"""Retrieval strategies, in which a language model rewrites, splits or routes the query."""
