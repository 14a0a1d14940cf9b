# SPDX-License-Identifier: Apache-2.0
# Ranges and samples: values as written, the same points for the same seed, one per part of a Latin hypercube.
spec() {
    printf 'command: chip time\narguments: ["h100", "{x} {y}"]\nvariables: {%s}\n%s\n' "$1" "${2-}" >s.yaml
    orrery sweep s.yaml --dry-run | sed "s/.*'\(.*\)'.*/\1/"
}
spec 'x: {from: 1, to: 1024, factor: 4}, y: a' | tr '\n' ';' && echo
spec 'x: {from: 0, to: 1, step: 0.25}, y: a' | tr '\n' ';' && echo
spec 'x: {from: 1, to: 1000, count: 4, log: true}, y: a' | tr '\n' ';' && echo
spec 'x: {from: 0.1, to: 0.7, count: 3}, y: a' | tr '\n' ';' && echo
spec 'x: [p, q], y: {from: 1, to: 3}' | tr '\n' ';' && echo
latin='sample: {method: latin-hypercube, count: 50, seed: 7}'
spec 'x: {from: 0.0, to: 50.0}, y: {from: 1, to: 50}' "$latin" >a
spec 'x: {from: 0.0, to: 50.0}, y: {from: 1, to: 50}' "$latin" | cmp - a
cut -d. -f1 a | cut -d' ' -f1 | sort -n | uniq | wc -l # each part of x once
cut -d' ' -f2 a | sort -n | uniq | wc -l               # each whole number of y once
spec 'x: {from: 0.0, to: 50.0}, y: {from: 1, to: 50}' "$(echo "$latin" | sed 's/: 7/: 8/')" | cmp -s - a || echo other seed, other points
spec 'x: {from: 1.0, to: 1000.0, log: true}, y: [u, v]' 'sample: {method: random, count: 1000}' >r
awk '$1 < 10 {a++} $1 >= 100 {c++} $2 == "u" {u++} END {print (a > 270 && a < 400), (c > 270 && c < 400), (u > 430 && u < 570)}' r
spec 'x: {from: 1, to: 9}, y: a' 'sample: {method: random, count: 20}
constraints: [x > 8]' | sort | uniq -c | tr -s ' ' # draws again until all hold
