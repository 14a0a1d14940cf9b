# SPDX-License-Identifier: Apache-2.0
# Wrong specifications and databases: one error with its place, nothing written. room: nsight
try() {
    printf '%b' "$1" >s.yaml
    orrery -q sweep s.yaml -o s.db
    echo "exit $?"
}
good='command: chip time h100\narguments: ["gemm bf16 m={m} n=64 k=64"]\nvariables: {m: [64, 128]}\n'
{
    try 'command: stagee\n'
    try 'command: stage\naxes: {tpp: [1]}\n'
    try 'command: stage, run\naxes: {zzzzzz: [1]}\n'
    try 'command: stage, run\naxes: {run.tp: [1]}\n'
    try 'command: stage\naxes: {tp: [1]}\nconstraints:\n  - tp * (2 +\n'
    try 'command: stage\naxes: {tp: [1]}\nconstraints: ["tp >> 2"]\n'
    try 'command: stage\naxes: {tp: [1]}\nconstraints: [tpx == 2]\n'
    try 'command: stage\naxes: {tp: [1, 2]}\nconstraints: [tp > 0, tp > 4]\n'
    try 'command: stage\naxes: {tp: [1, 2]}\nconstraints: [tp / 0 > 4]\n'
    try 'command: stage\naxes: {tp: []}\n'
    try 'command: stage\naxes: {tp: {from: 0, to: 4, factor: 2}}\n'
    try 'command: stage\naxes: {tp: {from: 1, to: 4, stepp: 2}}\n'
    try 'command: stage\naxes: {tp: [1]}\noptions: {dp: "{pp}", pp: "{dp}"}\n'
    try 'command: stage\naxes: {no-overlap: [1, maybe]}\n'
    try 'command: stage\nsample: {method: sobol, count: 3}\n'
    try 'command: stage\nbogus: 1\n'
    try 'command: stage\naxes: {tp: [1], tp: [2]}\n'
    try ': [\n'
    ls s.db
    orrery sweep missing.yaml
    echo "exit $?"
    orrery sweep s.yaml --shard 3/2
    orrery sweep show s.yaml --jobs 2
    orrery sweep show missing.db
    echo "exit $?"

    try "$good" | head -1
    orrery sweep show s.db --columns mm
    orrery sweep show s.db --where 'm >'
    orrery sweep best s.db
    orrery sweep plot s.db --x m --y nothing
    orrery sweep merge s.db
    printf "$good" | sed 's/128/256/' >other.yaml
    orrery sweep other.yaml -o s.db # a database of another sweep
    echo "exit $?"
    orrery -q sweep other.yaml
    orrery sweep merge x.db s.db other.db
    echo "exit $?"
    echo text >text.db
    orrery sweep s.yaml -o text.db
    echo "exit $?"
    orrery sweep s.yaml -o nowhere/s.db
    echo "exit $?"
    ls x.db
} >log 2>&1
sed 's/(build [0-9a-f]*)/(build ...)/' log
