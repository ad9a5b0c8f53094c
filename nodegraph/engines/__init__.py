"""Engines that search a graph's vectors and words beside its store: Milvus, Chroma, OpenSearch."""
