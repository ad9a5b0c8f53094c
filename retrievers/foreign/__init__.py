"""Adapters from retrievers of other frameworks, recognized by duck typing, to this package."""
