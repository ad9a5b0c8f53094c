"""Adapters for retrievers of other frameworks, which are recognized by duck typing."""
