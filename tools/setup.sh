#!/usr/bin/env bash
# Brings what the build and the tests need onto this machine.
#   setup.sh packages SECTION     the system packages of tools/packages.txt up to that section, by apt
#   setup.sh venv FOLDER FILE     a virtual environment with the Python packages of FILE
#   setup.sh folder FOLDER FILE   the Python packages of FILE in a folder for PYTHONPATH
#   setup.sh plugins FILE         the library in each of the wheels that FILE names, as .cache/plugins/VERSION/xla_cuda_plugin.so
#   setup.sh unpacked PACKAGE     the files of a Debian package as .cache/PACKAGE, not installed: its service would start
#   setup.sh memory_viz           the script of PyTorch's memory_viz as .cache/memory_viz/MemoryViz.js
#   setup.sh node                 prints the folder of a node >= 20, fetched through npm where the system has an older one
set -euo pipefail
cd "$(dirname "$0")/.."

# The tools of the user interface need node 20.19 or newer.
has_node() {
  command -v npm >/dev/null && node --version 2>/dev/null | awk -F "[v.]" '{ exit !($2 * 100 + $3 >= 2019) }'
}

installed() { dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

# wanted_packages SECTION KIND: those of the section and of the ones before it; KIND is required, optional or node.
wanted_packages() {
  awk -v last="[$1]" -v kind="$2" '
    /^\[/ { if (past) exit; past = $1 == last; next }
    /^(#|$)/ { next }
    /^@node / { if (kind == "node") print $2; next }
    /^\?/ { if (kind == "optional") print substr($1, 2); next }
    kind == "required" { print $1 }' tools/packages.txt
}

missing_packages() {
  local name
  for name in $(wanted_packages "$1" required); do installed "$name" || echo "$name"; done
  has_node || for name in $(wanted_packages "$1" node); do installed "$name" || echo "$name"; done
  for name in $(wanted_packages "$1" optional); do
    installed "$name" || ! apt-cache show "$name" >/dev/null 2>&1 || echo "$name"
  done
}

setup_packages() {
  local section=$1 missing
  if ! grep -qx "\[$section\]" tools/packages.txt; then
    echo "setup: tools/packages.txt has no section \"$section\"" >&2
    return 2
  fi
  if ! command -v apt-get >/dev/null; then
    echo "setup: this system has no apt; install by hand what stands for these Debian packages:" $(wanted_packages "$section" required) >&2
    return 0
  fi
  missing=$(missing_packages "$section")
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
  missing=$(missing_packages "$section")  # optional packages are known only now, on a machine that had no lists
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

setup_folder() {
  tools/progress.sh "Python packages of $2 into $1" \
    .venv/bin/python -m pip install --disable-pip-version-check --no-input --progress-bar off --no-compile --no-deps --upgrade --target "$1" --requirement "$2"
}

setup_plugins() {
  local wheel folder
  grep -v '^#' "$1" | while read -r wheel; do
    folder=.cache/plugins/${wheel##*==}
    [ ! -e "$folder/xla_cuda_plugin.so" ] || continue
    mkdir -p "$folder"
    tools/progress.sh "library of $wheel" \
      .venv/bin/python -m pip download --disable-pip-version-check --no-input --progress-bar off --no-deps --dest "$folder" "$wheel"
    .venv/bin/python - "$folder" <<'PYTHON'
import shutil, sys, zipfile
from pathlib import Path
folder = Path(sys.argv[1])
wheel, = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    name, = (name for name in archive.namelist() if name.endswith("/xla_cuda_plugin.so"))
    with archive.open(name) as source, open(folder / "unfinished", "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
wheel.unlink()
(folder / "unfinished").rename(folder / "xla_cuda_plugin.so")
PYTHON
  done
}

# Without it, the tests that need it are skipped.
setup_unpacked() {
  local folder=.cache/$1
  [ ! -d "$folder/usr" ] || return 0
  mkdir -p "$folder"
  if ! (cd "$folder" && apt-get download --quiet "$1") >"$folder/log" 2>&1; then
    echo "setup: $1 cannot be fetched; see $folder/log" >&2
    return 0
  fi
  dpkg-deb --extract "$folder/$1"_*.deb "$folder"
  rm -f "$folder/$1"_*.deb
}

# No package of Python or npm contains it: pages load it from a CDN. Debian has the source of PyTorch in the archive that this machine
# uses, whichever edition of Debian it runs.
setup_memory_viz() {
  local folder=.cache/memory_viz name=pytorch_2.6.0+dfsg.orig.tar.xz archive
  local sha256=099a9601bc40d67656e75735c44abedb0fbe92d08817852ab7472eebb7e6ddff
  [ ! -e "$folder/MemoryViz.js" ] || return 0
  archive=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' | awk '$1 !~ /security/ { print $2; exit }')
  mkdir -p "$folder"
  tools/progress.sh "memory_viz of PyTorch" /usr/lib/apt/apt-helper download-file \
    "${archive%/}/pool/main/p/pytorch/$name" "$folder/$name" "SHA256:$sha256"
  python3 - "$folder/$name" "$folder/MemoryViz.js" <<'PYTHON'
import sys, tarfile
from pathlib import Path
with tarfile.open(sys.argv[1]) as source:
    for member in source:
        if member.name.endswith("/torch/utils/viz/MemoryViz.js"):
            Path(sys.argv[2]).write_bytes(source.extractfile(member).read())
            break
PYTHON
  rm "$folder/$name"
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
