"""Shared helpers: validation, sparse rows, memory, files, text."""
