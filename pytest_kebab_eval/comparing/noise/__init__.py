"""How much checks flip without a change, learnt from replicates; only sides with several runs need it."""
