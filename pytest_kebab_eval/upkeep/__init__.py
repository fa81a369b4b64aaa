"""Keeping the golden file right: checked against a database, locked, brought up to date."""
