#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes one link per old program name; a name that people give to python3 becomes a copy of the launcher.
#     link_names.sh FOLDER TABLES PROGRAM STAMP   while building: beside FOLDER/orrery, a link to PROGRAM
#     link_names.sh TABLES PLACE MANDIR           while installing: into libexec/orrery, bin, or none, with man pages
set -eu
program=orrery
launcher=$(dirname "$0")/old/old_launcher.py
if [ $# -eq 4 ]; then
    folder=$1 tables=$2
    built=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
    rm -rf "$folder"
    mkdir -p "$folder"
    ln -s "../${built#"$(dirname "$folder")/"}" "$folder/orrery"
else
    tables=$1 man=$MESON_INSTALL_DESTDIR_PREFIX/$3/man1
    case $2 in
    bin) folder=$MESON_INSTALL_DESTDIR_PREFIX/bin ;;
    libexec) folder=$MESON_INSTALL_DESTDIR_PREFIX/libexec/orrery program=../../bin/orrery ;;
    *) exit 0 ;;
    esac
    mkdir -p "$folder" "$man"
fi
"$tables" old-names | while read -r name; do
    case $name in
    *.py)
        rm -f "$folder/$name"
        cp "$launcher" "$folder/$name"
        chmod 755 "$folder/$name"
        ;;
    *) ln -sf "$program" "$folder/$name" ;;
    esac
    [ $# -eq 4 ] || "$tables" old-man "$name" >"$man/$name.1"
done
# Some are also started as modules: python3 -m scalesim.scale, python3 ROOT/scalesim/scale.py.
module() {
    [ -e "$folder/$1" ] && [ "$2" != bin ] || return 0
    mkdir -p "$folder/$(dirname "$3")"
    cp "$launcher" "$folder/$3"
}
module scale.py "$2" scalesim/scale.py
module stage "$2" symbolic_tensor_graph/main.py
if [ -e "$folder/AstraSimNetwork" ] && [ "$2" != bin ]; then # HPCC's simulator: ./waf --run 'scratch/third mix/config.txt'
    mkdir -p "$folder/simulation"
    cp "$(dirname "$0")/old/old_waf.py" "$folder/simulation/waf"
    chmod 755 "$folder/simulation/waf"
fi
for name in trace_link timeline_visualizer et_converter et_generator et_visualizer et_jsonizer; do
    module chakra_converter "$2" chakra/$name/$name.py
done
for name in converter generator visualizer jsonizer trace_link timeline_visualizer; do
    module chakra_converter "$2" chakra/src/$name/$name.py
done
[ $# -ne 4 ] || : >"$4"
