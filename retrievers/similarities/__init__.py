"""Similarities between queries and nodes: BM25, cosine, exact keys and user-defined functions."""
