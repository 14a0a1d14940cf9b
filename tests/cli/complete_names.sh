# SPDX-License-Identifier: Apache-2.0
# room: chakra, schedgen
# Completion of built-in names: models, chips, patterns, shapes, views and kinds, networks, old names; in all three shells.
source "$ORR_BUILD/docs/orrery"
try() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _orrery "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    echo "$*: ${COMPREPLY[*]}"
}
try orrery serve qwen3-2
try orrery gen topology dra
try orrery gen goal binomial
try schedgen --ptrn dissem
try orrery view gra
try orrery convert sim
try orrery run -n pa
try orrery help chakra_j
try chakra_converter Py
# Nothing runs here that could read the other scripts: each word stands where its shell looks for it.
echo "zsh:"
grep -c '^#compdef orrery .*chakra_converter.*schedgen' "$ORR_BUILD/docs/_orrery"
grep -o "':SHAPE:{compadd --[^;]*" "$ORR_BUILD/docs/_orrery"
grep -o "':MODEL:{compadd -- [a-z0-9.-]*" "$ORR_BUILD/docs/_orrery" | sort -u
grep -o -- "--hardware\[.*{compadd -- [a-z0-9]*" "$ORR_BUILD/docs/_orrery" | sed 's/\[.*{/ {/' | sort -u
grep -o -- "--ptrn}.*{compadd -- [a-z0-9]*" "$ORR_BUILD/docs/_orrery" | sed 's/\[.*{/ {/'
echo "fish:"
grep -o "^complete -c orrery -n '__fish_seen_subcommand_from topology' -a '.*" "$ORR_BUILD/docs/orrery.fish"
grep -o "^complete -c orrery -n '__fish_seen_subcommand_from serve' -a ' [a-z0-9.-]*" "$ORR_BUILD/docs/orrery.fish"
grep "^complete -c chakra_jsonizer" "$ORR_BUILD/docs/orrery.fish"
grep -o "^complete -c schedgen -l ptrn .* -a ' [a-z0-9]*" "$ORR_BUILD/docs/orrery.fish"
