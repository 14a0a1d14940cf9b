# SPDX-License-Identifier: Apache-2.0
# No colour when stderr is not a terminal, unless asked for; --color decides over NO_COLOR.
orrery nonsense 2>&1 | cat -v
orrery --color=always nonsense 2>&1 | cat -v
NO_COLOR=1 orrery --color=always nonsense 2>&1 | cat -v
orrery --color=never nonsense 2>&1 | cat -v
