"""Strategies: retrievers that let a model rewrite, split or route the query."""
