"""Readers: convert files to documents."""
