// SPDX-License-Identifier: Apache-2.0
// whatif.js - what-ifs: how much faster the run would be, the most effective change first.

import {el} from './dom.js';
import {smallBar} from './bars.js';
import {listOf, missingPanel, panel} from './panel.js';
import {sortableTable} from './table.js';
import {changeText, isKnown, timeExact, timeText} from './units.js';
/** @import {Column} from './table.js' */
/** @import {Run, WhatIf} from './types.js' */

/** @param {Run} run */
export function whatIfPanel(run) {
    const rows = [...listOf(run.what_if)].sort((a, b) => (b.gain_share ?? -Infinity) - (a.gain_share ?? -Infinity));
    if (rows.length === 0) return missingPanel('whatif', 'What if', run.kind === 'measured'
        ? 'A measured run cannot be varied. Its traces can: orrery report TRACES --what-if simulate.'
        : 'No variations were tried. They need the traces: orrery run --report, or orrery report TRACES, with --what-if simulate.');
    const best = Math.max(0, ...rows.map((row) => row.gain_share ?? 0));
    /** @type {Column<WhatIf>[]} */
    const columns = [
        {title: 'Change', key: (row) => row.change, show: (row) => el('b', {}, row.change)},
        {title: 'Time', isNumber: true, key: (row) => row.time_ns, show: (row) => timeText(row.time_ns), exact: (row) => timeExact(row.time_ns)},
        {title: 'Change of the time', isNumber: true, key: (row) => row.gain_share, meaning: 'against this run; negative is faster',
            show: (row) => el('span', {class: 'with-bar wide'}, smallBar(Math.max(0, row.gain_share ?? 0)), isKnown(row.gain_share) ? changeText(-row.gain_share) : changeText(null))},
        {title: 'How it was found', key: (row) => row.how, show: (row) => row.how ?? ''},
    ];
    return panel('whatif', 'What if', best < 0.01 ? 'None of the changes shortens the run by more than 1 %.' : 'The run time after one change each; bars are relative to this run.', sortableTable('Variations', columns, rows));
}
