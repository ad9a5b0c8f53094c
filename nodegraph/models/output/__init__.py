"""Parsing what models write: every parser is a function on texts."""
