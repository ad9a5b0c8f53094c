"""Adapters and caches for embedding models and language models."""
