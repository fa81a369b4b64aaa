"""A comparison by several processes, here or on a cluster: they score parts of the runs, which are joined."""
