"""Rerankers: cross-encoders, functions, filters; and the retriever around them."""
