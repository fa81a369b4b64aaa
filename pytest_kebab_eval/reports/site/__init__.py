"""`kebab-eval site`: a static site of all runs; `building` makes it, the other files are its parts.

A comparison of two neighbours is made once. What the pages need of it is kept beside its report as a record,
so that one more run costs one comparison; every page is written anew only if it differs.
"""
