"""Entities that passages mention, found without a model."""
