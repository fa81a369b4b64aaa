"""A second reading of the contract, to hold the product against.

The package was written from the contract and the public documentation alone, without looking at the code of
`pytest_kebab_eval`. `generate` makes small comparisons at random, `model` says what has to become of each
query, each gate and the session, and `compare` runs pytest on the same files and names every difference.
Where the contract leaves something open, the model accepts either, or the generator does not make it.

`make reference COMPARISONS=5000 SEED=1` runs it; `python -m reference.compare --only SEED --keep DIRECTORY`
repeats one comparison in every mode and keeps its files.
"""
