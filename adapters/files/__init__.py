"""Readers for PDF, Office, web pages, books, mail and programs."""
