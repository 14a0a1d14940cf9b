# SPDX-License-Identifier: Apache-2.0
# One object that programs can read, with every pattern that the text shows.
orrery gen --list --json >list.json
python3 -c '
import json
d = json.load(open("list.json"))
print(list(d)[:2], d["format"], d["version"])
p = {p["name"]: p for p in d["patterns"]}
print(p["layered"]["defaults"], p["layered"]["old_name"])
open("names", "w").writelines(n + "\n" for n in p)
'
orrery gen --list | cut -d ' ' -f 1 | cmp - names
