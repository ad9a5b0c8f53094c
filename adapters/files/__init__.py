"""Readers for PDF and Office files, web pages, e-books, e-mail and source code."""
