"""The command ``nodekin eval``, which measures and compares retrievers."""
