"""A `CompareReport` -> Markdown, HTML, JSON, terminal text; and writing them where they belong."""
