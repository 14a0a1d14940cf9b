# SPDX-License-Identifier: Apache-2.0
# Completion in bash, as the shell would call it.
source "$ORR_BUILD/docs/orrery"
try() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _orrery "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    echo "$*: ${COMPREPLY[*]}"
}
try orrery hel
try orrery help --q
try orrery help --color ''
try orrery help --color = al
try orrery help hel
try orrery gen go
try orrery gen goal --segm
try orrery gen goal --compat ''
try orrery stage llama-3-7
try orrery gen all_re
try orrery convert --hardware h2
