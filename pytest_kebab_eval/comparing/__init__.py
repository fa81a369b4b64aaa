"""The scorecards of two sides -> a `CompareReport`, gates judged, and a verdict on each query."""
