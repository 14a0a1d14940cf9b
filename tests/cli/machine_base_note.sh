# SPDX-License-Identifier: Apache-2.0
# A file with a base is described as what it is, not as its base; export answers --json.
printf 'name: mine\nbase: dgx-h100\ndevices: 4\n' > mine.yml
orrery machine show mine.yml | head -1
orrery -q machine export mine.yml -o files --json
