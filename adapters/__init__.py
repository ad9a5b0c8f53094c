"""Integrations with other packages, such as `nodekin.adapters.langchain` and `.llama_index`."""
