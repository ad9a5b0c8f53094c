"""Adapters to other packages: import `nodekin.adapters.langchain` or `.llama_index`."""
