"""Enables `pytester`, which the tests of the plugin use."""

pytest_plugins = ["pytester"]
