#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes one link per old program name.
#     link_names.sh FOLDER TABLES PROGRAM STAMP   while building: beside FOLDER/orrery, a link to PROGRAM
#     link_names.sh TABLES PLACE                  while installing: into libexec/orrery, bin, or none
set -eu
program=orrery
if [ $# -eq 4 ]; then
    folder=$1 tables=$2
    built=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
    rm -rf "$folder"
    mkdir -p "$folder"
    ln -s "../${built#"$(dirname "$folder")/"}" "$folder/orrery"
else
    tables=$1
    case $2 in
    bin) folder=$MESON_INSTALL_DESTDIR_PREFIX/bin ;;
    libexec) folder=$MESON_INSTALL_DESTDIR_PREFIX/libexec/orrery program=../../bin/orrery ;;
    *) exit 0 ;;
    esac
    mkdir -p "$folder"
fi
"$tables" old-names | while read -r name; do
    ln -sf "$program" "$folder/$name"
done
[ $# -ne 4 ] || : >"$4"
