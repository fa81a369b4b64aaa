"""`kebab-eval site`: a static site of all runs, of which a new run costs one comparison."""
