"""Transforms that extract names, summaries, keywords or questions from texts."""
