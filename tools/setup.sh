#!/usr/bin/env bash
# Brings what the build and the tests need onto this machine.
#   setup.sh packages             the system packages of tools/packages.txt, by apt
#   setup.sh venv FOLDER FILE     a virtual environment with the Python packages of FILE
#   setup.sh node                 prints the folder of a node >= 20, fetched through npm where the system has an older one
set -euo pipefail
cd "$(dirname "$0")/.."

# The tools of the user interface need node 20.19 or newer.
has_node() {
  command -v npm >/dev/null && node --version 2>/dev/null | awk -F "[v.]" '{ exit !($2 * 100 + $3 >= 2019) }'
}

installed() { dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

wanted_packages() {  # of the kind given: required, optional or node
  local mark
  case $1 in required) mark='[^?@#]' ;; optional) mark='?' ;; node) mark='@' ;; esac
  grep "^$mark" tools/packages.txt | sed 's/^?//; s/^@node //'
}

missing_packages() {
  local name
  for name in $(wanted_packages required); do installed "$name" || echo "$name"; done
  has_node || for name in $(wanted_packages node); do installed "$name" || echo "$name"; done
  for name in $(wanted_packages optional); do
    installed "$name" || ! apt-cache show "$name" >/dev/null 2>&1 || echo "$name"
  done
}

setup_packages() {
  if ! command -v apt-get >/dev/null; then
    echo "setup: this system has no apt; install by hand what stands for these Debian packages:" $(wanted_packages required) >&2
    return 0
  fi
  local missing
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get)
  if [ "$(id -u)" != 0 ]; then
    # sudo may ask for a password only where somebody sits at a terminal.
    if ! command -v sudo >/dev/null || ! { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }; }; then
      echo "setup: system packages are missing and this user cannot install them. Run this line as root, then make again:" >&2
      echo "apt-get update && apt-get install -y --no-install-recommends" $missing >&2
      return 1
    fi
    apt=(sudo "${apt[@]}")
  fi
  tools/progress.sh "apt-get update" "${apt[@]}" update
  missing=$(missing_packages)  # optional packages are known only now, on a machine that had no lists
  tools/progress.sh "apt-get install" "${apt[@]}" install -y --no-install-recommends $missing
}

setup_venv() {
  local folder=$1 requirements=$2
  if [ ! -x "$folder/bin/python" ]; then
    "${PYTHON:-python3}" -m venv "$folder"
  fi
  tools/progress.sh "Python packages of $requirements into $folder" \
    "$folder/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off --no-compile --requirement "$requirements"
}

setup_node() {
  if has_node; then
    dirname "$(command -v node)"
    return
  fi
  local folder=$PWD/.cache/node
  if [ ! -x "$folder/node_modules/node/bin/node" ]; then
    tools/progress.sh "node 20" npm install --no-audit --no-fund --prefix "$folder" node@20 >&2
  fi
  echo "$folder/node_modules/node/bin"
}

"setup_$1" "${@:2}"
