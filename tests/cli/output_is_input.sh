# SPDX-License-Identifier: Apache-2.0
# room: nsight
# No output is written over an input, or over another output, by whatever path it is named; the files are as before.
orrery -q stage gpt2 --dp 2 --layers 1 --batch 4 -o a.orr >/dev/null
orrery -q convert et a.orr -o b
orrery -q run a.orr --machine dgx-h100 --timeline t.json >/dev/null
ln -s a.orr link.orr
mkdir d
echo '[[0, 1], [2, 3]]' >place.json
printf 'command: run\noptions: {traces: a.orr, machine: dgx-h100}\naxes: {steps: [1, 2]}\n' >s.yaml
orrery -q sweep s.yaml >/dev/null
sha256sum ./*.* >before
t() { orrery -q "$@" 2>&1 >/dev/null | head -n 1; sha256sum --quiet -c before || sha256sum ./*.* >before; }
t run a.orr --machine dgx-h100 --csv ./a.orr
t run link.orr --machine dgx-h100 --report a.orr
t run a.orr --machine dgx-h100 --timeline d/../link.orr
t run b --machine dgx-h100 --csv b.0.et
t run a.orr --job b,link.orr --machine dgx-h100 --csv a.orr
t run a.orr --job a.orr --placement place.json --machine dgx-h100 --csv d/../place.json
t run a.orr --machine dgx-h100 --compare fluid,unaware --compare-traces b,link.orr --compare-chart a.orr
t run a.orr --machine dgx-h100 --csv x.out --report d/../x.out
t report t.json -o t.json
t report t.json a.orr --machine dgx-h100 -o a.orr
t view timeline t.json -o t.json
t convert goal a.orr -o a.orr
t plan gpt2 --machine dgx-h100:1 --batch 8 --fix tp=1,pp=1 --csv x.out --report ./x.out
t stage gpt2 --layers 1 -o x.orr --memory x.orr
t sweep s.yaml -o s.yaml
t sweep export csv s.db -o s.db
# The same kind of file again is fine, and so is a word that only looks like a file.
t convert et a.orr -o a.orr
t check a.orr --fix -o a.orr
t report t.json -o r.html --title r.html
t report t.json -o r.html --title r.html
t run a.orr --machine dgx-h100 --csv /dev/null --timeline /dev/null
# Nor is the name of a pattern or of a model a file.
mkdir names && cd names || exit
orrery -q gen all_reduce --ranks 2 -o all_reduce && orrery -q gen all_reduce --ranks 2 -o all_reduce
orrery -q stage gpt2 --layers 1 --dp 2 -o gpt2 >/dev/null && orrery -q stage gpt2 --layers 1 --dp 2 -o gpt2 >/dev/null
echo *
