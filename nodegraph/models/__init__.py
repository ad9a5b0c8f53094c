"""Models: adapters for embedding models and language models, and caches."""
