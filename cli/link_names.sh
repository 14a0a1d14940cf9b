#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes one link per old program name beside the program.
#     link_names.sh FOLDER TABLES PROGRAM STAMP   while building: FOLDER/orrery is a link to PROGRAM
#     link_names.sh TABLES                        while installing: meson tells the place, the program is there
set -eu
if [ $# -eq 4 ]; then
    folder=$1 tables=$2
    program=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
    rm -rf "$folder"
    mkdir -p "$folder"
    ln -s "../${program#"$(dirname "$folder")/"}" "$folder/orrery"
else
    folder=$MESON_INSTALL_DESTDIR_PREFIX/bin tables=$1
fi
"$tables" old-names | while read -r name; do
    ln -sf orrery "$folder/$name"
done
[ $# -ne 4 ] || : >"$4"
