"""A `CompareReport` -> Markdown, HTML, JSON, terminal text; and writing them where they belong."""

FORMATS = ("md", "json", "html")  # `publishing.render` knows how each is made
