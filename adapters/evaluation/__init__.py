"""The command ``nodekin eval``."""
