"""Query strategies: retrievers that let a model choose what to search for."""
