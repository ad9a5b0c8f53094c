"""Parsers for model answers. They are functions on texts."""
