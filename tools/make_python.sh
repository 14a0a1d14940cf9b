#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel of the Python package from the library and the program of a build folder, and installs it into a
# virtual environment there: make_python.sh BUILD.  Status 77: a Debian package is missing (tools/setup.sh python).
set -eu

build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)

# Another python3 may come first in PATH; Debian's packages are for its own.
python=
for candidate in "${PYTHON-}" python3 /usr/bin/python3; do
    if [ -n "$candidate" ] && "$candidate" -c 'import mesonpy, pip' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "python: no python3 with meson-python and pip: tools/setup.sh python" >&2
    exit 77
fi

venv=$build/python-venv wheels=$build/python-wheel log=$build/python.log
rm -rf "$wheels"
mkdir -p "$wheels" "$build/python-build" "$build/python-drop-in"

# wheel SOURCE BUILD-FOLDER [SETTING...]: meson-python reuses an existing build folder, so a second wheel compiles only
# what has changed.
wheel() {
    source=$1 folder=$2
    shift 2
    # meson-python 0.12 mistakes its own file in the source folder for a configured build folder.
    [ -f "$folder/build.ninja" ] || rm -f "$source/.mesonpy-native-file.ini"
    "$python" -m pip wheel "$source" --quiet --no-build-isolation --no-deps --no-index --wheel-dir "$wheels" \
        --config-settings=builddir="$folder" "$@" >"$log" 2>&1 || {
        cat "$log" >&2
        exit 1
    }
}
wheel "$root" "$build/python-build" --config-settings=setup-args="-Dpython_from=$build"
wheel "$root/python/drop_in" "$build/python-drop-in"
[ -x "$venv/bin/python" ] || "$python" -m venv --system-site-packages --without-pip "$venv"
"$python" -m pip --python "$venv/bin/python" install --quiet --no-index --no-deps --force-reinstall \
    --no-warn-script-location --disable-pip-version-check "$wheels"/*.whl >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
}
ls "$wheels"
