"""A `CompareReport` -> Markdown, JSON, terminal text: each a pure function."""
