"""Embedding models in any form, and the vectors they have made."""
