"""Transforms that extract entities without a model, or summaries and the like with a model."""
