# SPDX-License-Identifier: Apache-2.0
# A log of issued nodes: for a viewer, by rank and packed; what is wrong has a place and writes nothing.
printf 'issue,x=0,x=0,x=1,x=COMP_NODE "a"\nissue,x=1,x=3,x=1,x=COMM_COLL_NODE\n' > log.csv
printf 'callback,x=0,x=1500,x=1,x=\ncallback,x=1,x=3003,x=1,x=\n' >> log.csv
orrery view timeline log.csv --frequency 1.5GHz
orrery view timeline log.csv --frequency 1500 --ranks 1 -o one.json.gz && gzip -dc one.json.gz | tail -2
orrery view timeline log.csv --frequency 1500 --to 1ns -o - | grep -c '"ph":"X"'
echo 'callback,x=0,x=9,x=5,x=b' >> log.csv
orrery view timeline log.csv -o bad.json
echo "status $?"
ls bad.json 2>/dev/null
for words in '--frequency 0' '--frequency 3parsecs' '--ranks 3-1' '--from 2us --to 1us' '--to soon'; do
    orrery view timeline log.csv $words
    echo "status $?"
done
