# SPDX-License-Identifier: Apache-2.0
# A job of four ranks, files under names that say nothing, clocks apart; what does not fit together is said.
mkdir job && python3 "$ORR_ROOT/tests/golden/torch_inputs.py" four job || exit 1
mv job/host0.json job/z1; mv job/device0.json job/y9; mv job/host3.json job/a; mv job/device3.json job/b
echo "not a trace" > job/notes
orrery link --ranks job -o job.orr --timeline run.json || exit 1
orrery check job.orr
grep -c '"ph":"X"' run.json
orrery link --ranks job -o no.et
echo "status $?"
rm job/a job/b
orrery link --ranks job -o three.orr
echo "status $?"
rm job/host1.json job/device1.json
orrery link --ranks job -o two.orr
echo "status $?"
