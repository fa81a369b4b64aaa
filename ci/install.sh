#!/usr/bin/env bash
# Installs what the project needs, and this package in the action's own version unless that brought one.
set -euo pipefail

if [[ -n $KEBAB_INSTALL ]]; then
  bash -euo pipefail -c "$KEBAB_INSTALL"
fi
if ! (cd / && python -c 'import pytest_kebab_eval') 2>/dev/null; then # from /, lest a directory here counts
  python -m pip install "$GITHUB_ACTION_PATH"
fi
