"""Helpers that are shared by several tests."""
