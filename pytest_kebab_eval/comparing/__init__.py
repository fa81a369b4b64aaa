"""Two scorecards -> a `CompareReport`, gates judged, and a verdict on each query."""
