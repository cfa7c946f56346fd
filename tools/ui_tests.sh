#!/usr/bin/env bash
# The tests of the user interface: types, units, and a real browser where one is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$(tools/setup.sh node):$PATH"
npm --prefix ui run --silent check
npm --prefix ui run --silent test
