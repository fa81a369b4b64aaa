"""`make compat`: the gate beside other pytest plugins, each in an environment of its own."""
