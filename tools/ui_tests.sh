#!/usr/bin/env bash
# The tests of the user interface.
#   ui_tests.sh unit      types and units
#   ui_tests.sh browser   a real browser; without one this fails, it is never left out silently
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$(tools/setup.sh node):$PATH"
case ${1:-} in
  unit)
    npm --prefix ui run --silent check
    npm --prefix ui run --silent test
    ;;
  browser)
    browser=${CHROMIUM:-/usr/bin/chromium}
    if [ ! -f "$browser" ] || [ ! -x "$browser" ]; then
      echo "ui: no Chromium at $browser: install the package chromium, or set CHROMIUM to a browser of its kind" >&2
      exit 1
    fi
    npm --prefix ui run --silent e2e
    ;;
  *)
    echo "ui_tests.sh: say which: unit or browser" >&2
    exit 2
    ;;
esac
