"""Retrievers of other frameworks, recognised by their shape, as retrievers of this package."""
