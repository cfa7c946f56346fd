#!/usr/bin/env bash
# Proves that a machine on which nothing is installed is enough: makes a root of plain Debian, clones the last commit into it, works there.
#   bare.sh all      Debian 12: make demo, then make test
#   bare.sh demo     Debian 12: make demo
#   bare.sh run COMMAND...   Debian 12: these commands, each one word
#   bare.sh wheel    Debian 11 and 13: installs the wheel of build/ beside TensorFlow and PyTorch (TORCH=0: without), records trainings, compares
# Certificates, resolver, proxies and the settings of pip and npm are those of this machine. KEEP=1 leaves the root for a look.
#
# What is mounted for the commands is mounted in a mount namespace that ends with them, so that nothing of this machine can be below the
# root when it is removed. mmdebstrap, while it works, mounts in the namespace of this script.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD
what=${1-all}
root=

die() { echo "bare: $*" >&2; exit 1; }

remove_root() {
  [ -n "$root" ] || return 0
  if [ "${KEEP:-}" = 1 ]; then
    echo "bare: the root is kept in $root"
  elif grep -q " $root/" /proc/self/mountinfo; then
    echo "bare: something is mounted below $root: it is left as it is; unmount it, then remove the folder" >&2
  else
    rm -rf --one-file-system "$root"
  fi
  root=
}
trap remove_root EXIT

# --- the root -------------------------------------------------------------------------------------------------------------------

# The mirrors of this machine serve the other releases too: "SUITE" of theirs becomes the one that is wanted.
apt_sources() {
  local suite=$1 here
  here=$(. /etc/os-release && echo "$VERSION_CODENAME")
  apt-get indextargets --format '$(REPO_URI) $(SUITE) $(CODENAME)' 'Created-By: Packages' | sort -u | while read -r uri _ codename; do
    case $codename in
      "$here") echo "deb $uri $suite main" ;;
      "$here-security") echo "deb $uri $suite-security main" ;;
    esac
  done
}

# Variables that say how to reach a registry; where one names a file or a folder, that goes along.
settings() { env | grep -E '^(PIP_|SSL_CERT_|NODE_EXTRA_CA_CERTS=|GIT_SSL_|npm_config_|NPM_CONFIG_|[A-Za-z]+_CA_BUNDLE=|(https?|ftp|all|no)_proxy=|(HTTPS?|FTP|ALL|NO)_PROXY=)' || true; }

copy_in() {  # the file or folder, to the same place
  if [ -e "$1" ]; then
    mkdir -p "$root$(dirname "$1")"
    cp -rLT "$1" "$root$1"
  fi
}

copy_settings() {
  local value file
  copy_in /etc/resolv.conf
  copy_in /etc/hosts
  copy_in /etc/ssl/certs/ca-certificates.crt
  copy_in /usr/local/share/ca-certificates  # from which the package would write the file above again
  copy_in /etc/pip.conf
  settings | cut -d= -f2- | while read -r value; do
    case $value in /etc/ssl/*) ;; /*) copy_in "$value" ;; esac
  done
  mkdir -p "$root/root/.config/pip"
  for file in "$HOME/.pip/pip.conf" "$HOME/.config/pip/pip.conf"; do
    if [ -f "$file" ]; then cp "$file" "$root/root/.config/pip/pip.conf"; fi
  done
  for file in "$(npm config get globalconfig 2>/dev/null || true)" "$HOME/.npmrc"; do
    if [ -f "$file" ]; then grep -vE '^(prefix|nodedir) *=' "$file" >>"$root/root/.npmrc" || true; fi
  done
}

make_root() {  # SUITE PACKAGE...
  local suite=$1
  shift
  root=$(mktemp -d "${TMPDIR:-/tmp}/vramscope-bare.XXXXXX")
  chmod 755 "$root"
  apt-config dump | grep -E '^Acquire::(https?::|Check-Valid-Until)' >"$root.apt" || true
  apt_sources "$suite" >"$root.list"
  [ -s "$root.list" ] || die "apt of this machine has no mirror of Debian: bare roots are made on Debian alone"
  tools/progress.sh "plain Debian $suite" mmdebstrap --variant=minbase --dpkgopt=force-unsafe-io --include="$(IFS=,; echo "$*")" --aptopt="$root.apt" "$suite" "$root" "$root.list"
  rm -f "$root.apt" "$root.list"
  copy_settings
}

# Runs a shell script in the root, as on a machine of its own: own processes, own /dev, no mount that could outlive it.
enter() {
  local assignments
  mapfile -t assignments < <(settings)
  unshare --mount --pid --fork --kill-child --propagation private sh -ec '
    root=$1; shift
    mount --bind "$root" "$root"  # unshare, which tests use, wants / to be a mount
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    for name in null zero full random urandom tty; do touch "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    ln -s /proc/self/fd/0 "$root/dev/stdin"; ln -s /proc/self/fd/1 "$root/dev/stdout"; ln -s /proc/self/fd/2 "$root/dev/stderr"
    exec chroot "$root" "$@"
  ' sh "$root" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${assignments[@]}" \
    TORCH="${TORCH:-}" sh -ec "$1" </dev/null
}

# --- what is shown in it --------------------------------------------------------------------------------------------------------

commands() {  # the commands of the README, one after the other, from a clone
  make_root bookworm make
  git clone --quiet --no-hardlinks "$source" "$root/vramscope"
  local command began
  for command; do
    began=$SECONDS
    echo "==> $command, on plain Debian 12"
    enter "cd /vramscope; $command" || die "$command failed on plain Debian 12"
    echo "==> $command: $((SECONDS - began)) s on plain Debian 12"
  done
  remove_root
}

wheel() {  # SUITE
  make_root "$1" python3 python3-venv
  mkdir "$root/wheel"
  VRAMSCOPE_BUILD=$source/build "${PYTHON:-python3}" -m pip wheel --quiet --no-deps --wheel-dir "$root/wheel" "$source"
  cp -r examples tests tools "$root/wheel"
  enter '
    cd /wheel
    python3 -m venv venv
    venv/bin/pip install --quiet --upgrade pip
    venv/bin/pip install --quiet *.whl tensorflow-cpu
    export TF_CPU_ALLOCATOR_USE_BFC=1 TF_CPP_MIN_LOG_LEVEL=3 TF_ENABLE_ONEDNN_OPTS=0 PYTHONWARNINGS=ignore KERAS_BACKEND=tensorflow
    venv/bin/vramscope run -o run -- venv/bin/python examples/demo_keras.py
    venv/bin/vramscope summary run
    venv/bin/vramscope layers run | grep -q shapes
    venv/bin/python tools/wheel_records.py python tensorflow
    if [ "$TORCH" != 0 ]; then
      python3 -m venv venv-torch
      venv-torch/bin/pip install --quiet --upgrade pip
      venv-torch/bin/pip install --quiet --no-cache-dir *.whl torch numpy
      venv-torch/bin/python tools/wheel_records.py torch
    fi
  ' || die "the wheel does not work on plain Debian $1"
  remove_root
}

has_build() { [ -x build/vramscope ] || die "there is no build to make the wheel of; run make build"; }

[ "$(id -u)" = 0 ] || die "needs root: it makes a root of its own and mounts in it"
case $what in
  all)
    has_build
    commands "make demo" "make test"
    wheel bullseye
    wheel trixie
    ;;
  demo) commands "make demo" ;;
  run)
    [ $# -gt 1 ] || die "say which commands to run"
    commands "${@:2}"
    ;;
  wheel)
    has_build
    wheel bullseye
    wheel trixie
    ;;
  *) die "say which: all, demo, wheel or run" ;;
esac
echo "bare: ok, $what in $((SECONDS / 60)) min $((SECONDS % 60)) s"
