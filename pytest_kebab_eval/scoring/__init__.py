"""A run + a golden set -> a `Scorecard` -> `AggregateMetrics`."""
