"""Strings to token ids."""
