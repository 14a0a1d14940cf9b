#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that are missing:
#     setup.sh [--dry-run] build [test] [browser] [launchers] [cluster] [docs] [python] [torch] [clang] [fuzz]
# If nothing is missing it does nothing and needs no privileges.  --dry-run only lists what is missing.
set -eu

build='gcc g++ libc6-dev meson ninja-build pkg-config python3 zlib1g-dev libzstd-dev libyaml-dev libsimdjson-dev libgraphviz-dev libsqlite3-dev'
test='zstd libcmocka-dev libprotobuf-c-dev protobuf-c-compiler mandoc clang-format-14'
browser='chromium nodejs npm'
# For the examples of sweeps on clusters, which are skipped without them.
launchers='openmpi-bin parallel'
cluster="$launchers slurm-wlm snakemake"
docs="$browser fonts-inter"
python='python3 python3-dev python3-pip python3-venv python3-mesonpy python3-numpy python3-pandas python3-pytest python3-matplotlib mypy'
torch='python3-torch'
clang='clang-14 clang-tidy-14 cppcheck'
fuzz="$clang libclang-rt-14-dev"

dry_run=
if [ "${1-}" = --dry-run ]; then
    dry_run=1
    shift
fi

if ! command -v dpkg-query >/dev/null; then
    echo "setup: not a Debian system; please see to it that these are there (Debian's names): $build" >&2
    exit 0
fi

missing=
for group in "$@"; do
    case $group in
    build) packages=$build ;;
    test) packages=$test ;;
    browser) packages=$browser ;;
    launchers) packages=$launchers ;;
    cluster) packages=$cluster ;;
    docs) packages=$docs ;;
    python) packages=$python ;;
    torch) packages=$torch ;;
    clang) packages=$clang ;;
    fuzz) packages=$fuzz ;;
    *)
        echo "setup: unknown group '$group'; there are: build test browser launchers cluster docs python torch clang fuzz" >&2
        exit 2
        ;;
    esac
    for package in $packages; do
        # Node.js from other sources includes npm and conflicts with Debian's.
        case $package in
        nodejs | npm) ! command -v "${package%js}" >/dev/null || continue ;;
        esac
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing="$missing $package"
    done
done
[ -n "$missing" ] || exit 0

if [ -n "$dry_run" ]; then
    as_root=none
elif [ "$(id -u)" -eq 0 ]; then
    as_root=
elif sudo -n true 2>/dev/null; then
    as_root='sudo -n'
else
    as_root=none
fi
if [ "$as_root" = none ]; then
    echo "setup: these packages are missing:$missing" >&2
    echo "setup: please install them:  sudo apt-get install$missing" >&2
    exit 1
fi

echo "setup: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
# Another apt may be at work (unattended upgrades, a second clone): wait for its locks instead of failing.  `update`
# does not wait by itself; when it fails for good, the lists that are there may still do.
for pause in 5 10 20 0; do
    $as_root apt-get -q -y update >&2 && break
    sleep $pause
done
$as_root apt-get -q -y -o DPkg::Lock::Timeout=600 install --no-install-recommends $missing >&2
