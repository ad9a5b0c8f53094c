"""Strategies: retrievers in which a model rewrites, splits or routes the query."""
