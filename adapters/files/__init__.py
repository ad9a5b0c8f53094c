"""Readers for PDF and Office files, web pages, books, mail and programs."""
