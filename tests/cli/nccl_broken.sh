# SPDX-License-Identifier: Apache-2.0
# room: nsight
# Every broken export: status 3, one line that names the file, nothing written.  Some are only odd, and then say so.
for file in "$ORR_ROOT"/tests/broken/nsys/*; do
    name=$(basename "$file")
    cp "$file" "$name"
    orrery nccl "$name" -o x.goal > out.txt 2> err.txt
    echo "$name: status $?: $(wc -l < err.txt) $(grep -v 'left out' err.txt | head -n 1)"
    [ -s out.txt ] && [ ! -e x.goal ] && echo "figures without a file"
    rm -f x.goal "$name"
done
cp "$ORR_ROOT"/tests/broken/nsys/cut_half.sqlite cut.sqlite
orrery view timeline cut.sqlite -o t.json
echo "status $?"
ls
mkfifo pipe.sqlite
timeout 20 orrery nccl pipe.sqlite
echo "status $?"
