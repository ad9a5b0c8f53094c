"""Parsers of model answers: functions on texts."""
