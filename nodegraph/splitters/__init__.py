"""Transforms that cut texts: sentences, chunks, headings, with their places."""
