# SPDX-License-Identifier: Apache-2.0
# Each old name in bin/ is a link to the program, or what python3 can start, and answers to --help with status 0, to a wrong flag with 2.
bin=$(dirname "$(command -v orrery)")
for name in $("$ORR_BUILD/cli/orrery_tables" old-names); do
    case $name in
    *.py) python3 "$bin/$name" --help | grep -q "^Usage: $name " || echo "python3 $name --help: no usage line" ;;
    *) [ "$(readlink "$bin/$name")" = orrery ] || echo "$name: not a link to orrery" ;;
    esac
    "$name" --help | grep -q "^Usage: $name " || echo "$name --help: no usage line"
    "$name" --no_such_flag 2>/dev/null
    [ $? -eq 2 ] || echo "$name: a wrong flag does not end with status 2"
done
