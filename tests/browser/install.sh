#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests of the report page need into the build folder: install.sh BUILD
# Where that cannot be done it says so and is content: the tests count as skipped then.
set -u
here=$(cd "$(dirname "$0")" && pwd)
to=$1/browser
stamp=$to/installed

if [ -f "$stamp" ] && cmp -s "$here/package-lock.json" "$stamp"; then
    exit 0
fi
if ! command -v npm >/dev/null; then
    echo "browser tests: npm is not here; the tests of the report page are skipped" >&2
    exit 0
fi
mkdir -p "$to" && cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$to" || exit 1
if (cd "$to" && timeout 300 npm ci --ignore-scripts --no-progress >npm.log 2>&1); then
    cp "$here/package-lock.json" "$stamp"
else
    echo "browser tests: npm could not install them ($to/npm.log says why); the tests of the report page are skipped" >&2
fi
exit 0
