"""Parsers for the answers of language models. All parsers are functions that take a text."""
