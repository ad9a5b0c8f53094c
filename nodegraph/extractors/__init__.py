"""Transforms that extract entities without a model, and summaries, keywords, questions by one."""
