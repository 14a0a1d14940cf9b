# SPDX-License-Identifier: Apache-2.0
# room: nsight
# A database, or its folder, that somebody removes while a sweep runs: the sweep says so, instead of writing into nothing.
cat >s.yaml <<'END'
command: stage, run
options: {model: gpt2, batch: 16, layers: 2}
axes: {tp: [1, 2, 4], machine: [dgx-h100, dgx-a100], seq: [128, 256, 512, 1024], micro_batch: [1, 2, 4]}
END
for what in o/x.db o; do
    mkdir -p o
    orrery -q sweep s.yaml -o o/x.db -j 1 >out 2>&1 &
    while [ ! -s o/x.db-wal ]; do sleep 0.01; done
    rm -rf "$what"
    wait $!
    echo "status $?"
    cat out
    rm -rf o
done
# Another file in its place is let be.
mkdir -p o
orrery -q sweep s.yaml -o o/x.db -j 1 >out 2>&1 &
while [ ! -s o/x.db-wal ]; do sleep 0.01; done
echo mine >o/new && mv o/new o/x.db
wait $!
echo "status $?"
cat out o/x.db
