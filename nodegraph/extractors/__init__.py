"""Transforms that extract entities without a model, or summaries and questions with a model."""
