# SPDX-License-Identifier: Apache-2.0
# A job from whose folder something was lost: a file that is cut short is named, a rank without its device trace is
# said to be one, keeps its number, and is an error with --strict, as is a node without its parent. A pipe is refused.
mkdir job && python3 "$ORR_ROOT/tests/golden/torch_inputs.py" four job || exit 1
gzip -c job/device2.json | head -c 400 >cut
mv job/device2.json .
cp cut job/device2.json.gz
orrery link --ranks job -o job.orr
echo "status $?"
rm job/device2.json.gz
orrery link --ranks job -o job.orr 2>&1 | grep rank
orrery link -q --ranks job --strict -o strict.orr
echo "status $?"
sed 's/"ctrl_deps": 4,/"ctrl_deps": 777777,/' job/host2.json >lonely.json
orrery link -q lonely.json --strict -o lonely.et
echo "status $?"
mkfifo pipe
orrery link pipe -o pipe.et
echo "status $?"
ls
