# SPDX-License-Identifier: Apache-2.0
# Times beyond the range of the clock: folded ranks say what every rank says, not a time that wrapped.
printf 'topology: [ Ring ]\nnpus_count: [ 16 ]\nbandwidth: [ 1 ]\nlatency: [ 500 ]\n' >ring.yml
printf '{"broadcast-implementation": ["ring"], "all-reduce-implementation": ["doubleBinaryTree"]}' >system.json
far() {
    orrery gen -q "$1" --ranks 16 --comm-size "$2" -o far
    for fold in auto off; do
        orrery run -q far -n unaware -t ring.yml -s system.json --fold $fold >$fold.txt 2>&1
        echo "$1, $fold: status $?, $(grep -c 'takes longer than 292 years' $fold.txt) line"
    done
}
far broadcast 1000000000000000000
far all_reduce 3000000000000000000
# The 500th group has not the tags of all ranks: same times as with the first.
write() { # GROUP RANK NODE...
    echo "{\"format\": \"orrery-trace\", \"version\": 1, \"metadata\": {\"version\": \"1.0.0\"}, \"nodes\": [$3]}" >"g$1.$2.json"
}
call() { # ID STREAM [GROUP] [PARENT]
    printf '{"id": "%s", "name": "call", "type": "COMM_COLL_NODE"%s, "attr": [{"name": "is_cpu_op", "boolVal": false}, {"name": "comm_type", "int64Val": "5"}, {"name": "comm_size", "int64Val": "32768"}, {"name": "stream", "int64Val": "%s"}%s]}' \
        "$1" "${4:+, \"dataDeps\": [\"$4\"]}" "$2" "${3:+, {\"name\": \"pg_name\", \"stringVal\": \"$3\"\}}"
}
work() { # ID US
    printf '{"id": "%s", "name": "work", "type": "COMP_NODE", "durationMicros": "%s", "attr": [{"name": "is_cpu_op", "boolVal": false}]}' "$1" "$2"
}
printf 'topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n' >four.yml
for group in 1 500; do
    write $group 0 "$(call 1 1 $group), $(work 2 100), $(call 3 2 '' 2)"
    write $group 1 "$(work 1 500), $(call 2 1 $group 1), $(call 3 2)"
    write $group 2 "$(call 1 2)"
    write $group 3 "$(call 1 2)"
    echo "{\"$group\": [0, 1]}" >groups.json
    orrery run -q g$group -n unaware -t four.yml -s system.json -g groups.json --fold off --csv g$group.csv >g$group.txt 2>&1
    echo "group $group: status $?"
done
grep -v '^#' g1.csv >one.csv && grep -v '^#' g500.csv | cmp - one.csv && echo "the same times"
