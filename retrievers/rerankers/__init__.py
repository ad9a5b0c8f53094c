"""Rerankers: cross-encoders, functions, filters. And the retriever around them."""
