# SPDX-License-Identifier: Apache-2.0
# Plans that cannot be printed are an error, also where a limit has stopped the search; without a second token there is no TPOT.
for limit in '' '--max-time 200ms'; do
    # shellcheck disable=SC2086
    orrery plan llama-3-8b --machine dgx-h100:1 --serve --requests 2000 --threads 1 $limit >/dev/full 2>err.txt
    echo "status $?, $(grep -c 'cannot write' err.txt) error"
done
orrery plan gpt2 --machine dgx-h100:1 --batch 16 --max-events 2500 --threads 1 >/dev/full 2>err.txt
echo "status $?, $(grep -c 'cannot write' err.txt) error"
orrery plan llama-3-8b --machine dgx-h100:1 --serve --requests 1 --output 1 --top 1 2>/dev/null | awk '$1 == "1" { print $6 == "-" || $5 == "-" || $4 == "-" ? "no TPOT" : $0 }'
