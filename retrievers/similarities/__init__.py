"""Similarities between a query and nodes: BM25, cosine, exact keys and registered functions."""
