"""Adapters that make retrievers of other frameworks usable here. They rely on duck typing."""
