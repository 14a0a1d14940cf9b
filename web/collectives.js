// SPDX-License-Identifier: Apache-2.0
// collectives.js - collective operations, and their bandwidth.

import {el} from './dom.js';
import {smallBar} from './bars.js';
import {listOf, missingPanel, panel} from './panel.js';
import {sortableTable} from './table.js';
import {countOf, countText, isKnown, rateText, shareText, sizeText, timeExact, timeText} from './units.js';
/** @import {Column} from './table.js' */
/** @import {CollectiveRow, Run} from './types.js' */

/** Groups that are only numbers are shown as "group N". @param {string} group */
function groupName(group) {
    return /^\d+$/.test(group) ? `group ${group}` : group;
}

/** @param {Run} run */
export function collectivesPanel(run) {
    const rows = listOf(run.collectives);
    if (rows.length === 0) return missingPanel('collectives', 'Collectives', 'The run had no collective operations, or none were recorded.');
    const longest = Math.max(1, ...rows.map((row) => row.total_ns ?? 0));
    /** @type {Column<CollectiveRow>[]} */
    const columns = [
        {title: 'Type', key: (row) => row.type, show: (row) => el('b', {}, row.type)},
        {title: 'Group', key: (row) => row.group, show: (row) => (row.group ? groupName(row.group) : isKnown(row.groups) ? countOf(row.groups, 'group') : ''), meaning: 'the ranks that take part'},
        {title: 'Ranks', isNumber: true, meaning: 'of a group', key: (row) => row.group_ranks, show: (row) => countText(row.group_ranks)},
        {title: 'Count', isNumber: true, key: (row) => row.count, show: (row) => (isKnown(row.count) ? `${countText(row.count)}\u00a0\u00d7` : countText(null))},
        {title: 'Size', isNumber: true, key: (row) => row.size_bytes, show: (row) => sizeText(row.size_bytes), exact: (row) => `${countText(row.size_bytes)} B`, meaning: 'bytes of one'},
        {title: 'Mean', isNumber: true, key: (row) => row.time_ns, show: (row) => timeText(row.time_ns), exact: (row) => timeExact(row.time_ns), meaning: 'mean'},
        {title: 'Total', isNumber: true, key: (row) => row.total_ns, exact: (row) => timeExact(row.total_ns),
            show: (row) => el('span', {class: 'with-bar'}, smallBar((row.total_ns ?? 0) / longest, 'collective'), timeText(row.total_ns))},
        {title: 'Algorithm bw.', isNumber: true, key: (row) => row.algorithm_Bps, show: (row) => rateText(row.algorithm_Bps), meaning: 'algorithm bandwidth: size / time'},
        {title: 'Bus bw.', isNumber: true, key: (row) => row.bus_Bps, show: (row) => rateText(row.bus_Bps),
            meaning: 'bus bandwidth: algorithm bandwidth times the fraction that must cross links; compare it with the link bandwidth'},
        {title: 'Exposed', isNumber: true, key: (row) => row.exposed_share, show: (row) => shareText(row.exposed_share), meaning: 'the share of its time in which the rank did not compute'},
    ];
    return panel('collectives', 'Collectives', `${countOf(rows.length, 'kind')} of collective operation, by type, group and size.`,
        sortableTable('Collective operations', columns, rows, {first: 20}));
}
