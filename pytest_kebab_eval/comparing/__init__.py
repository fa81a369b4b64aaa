"""The results of all runs, side by side -> a `CompareReport`, gates judged, and a verdict on each query."""
