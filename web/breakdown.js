// SPDX-License-Identifier: Apache-2.0
// breakdown.js - where the time of a rank went, for each group of identical ranks.

import {el} from './dom.js';
import {barLegend, stackedBar} from './bars.js';
import {listOf, missingPanel, panel} from './panel.js';
import {sortableTable} from './table.js';
import {countOf, isKnown, timeExact, timeText} from './units.js';
/** @import {Column} from './table.js' */
/** @import {BreakdownRow, Run} from './types.js' */

const GROUPS_DRAWN = 32;

/** @type {{kind: string, name: string, key: keyof BreakdownRow, isHatched?: boolean, meaning: string}[]} */
const SHARES = [
    {kind: 'compute', name: 'compute', key: 'compute_ns', meaning: 'time in which the rank computes, with or without overlapping communication'},
    {kind: 'collective', name: 'exposed communication', key: 'comm_exposed_ns', meaning: 'data could flow, and the rank did not compute'},
    {kind: 'memory', name: 'memory', key: 'memory_ns', meaning: 'loads, stores and copies that no compute overlaps'},
    {kind: 'host', name: 'host', key: 'host_ns', meaning: 'only the host works'},
    {kind: 'waiting', name: 'waits for peers', key: 'waiting_ns', meaning: 'in a collective that not all members have entered'},
    {kind: 'bubble', name: 'pipeline bubble', key: 'bubble_ns', meaning: 'waits only for messages that have not been sent'},
    {kind: 'idle', name: 'idle', key: 'idle_ns', meaning: 'nothing is in progress on the rank'},
];

/** @param {BreakdownRow} row @param {keyof BreakdownRow} key */
function figureOf(row, key) {
    const value = row[key];
    return typeof value === 'number' ? value : 0;
}

/** @param {BreakdownRow} row @param {number} longest */
function groupBar(row, longest) {
    const whole = isKnown(row.total_ns) ? row.total_ns : longest;
    const parts = SHARES.map((share) => ({...share, ns: figureOf(row, share.key)}));
    const overlapped = figureOf(row, 'comm_overlapped_ns');
    return el('div', {class: 'group'},
        el('div', {class: 'group-name'}, el('b', {}, row.name), isKnown(row.count) && row.count > 1 ? el('span', {class: 'faint'}, `mean of ${countOf(row.count, 'rank')}`) : null),
        el('div', {class: 'group-bars', style: `width:${(whole / longest * 100).toFixed(2)}%`},
            stackedBar(parts, whole),
            overlapped > 0 ? el('div', {class: 'under'}, stackedBar([{kind: 'collective', name: 'overlapped communication', ns: overlapped, isHatched: true}], whole)) : null),
        el('div', {class: 'group-time', title: timeExact(row.total_ns)}, timeText(row.total_ns)));
}

/** @param {Run} run */
export function breakdownPanel(run) {
    const rows = listOf(run.breakdown).filter((row) => row.total_ns !== 0);
    if (rows.length === 0) {
        return missingPanel('breakdown', 'Where the time went', 'No breakdown: this run has no spans with a duration.');
    }
    const longest = Math.max(1, ...rows.map((row) => row.total_ns ?? 0));
    const used = SHARES.filter((share) => rows.some((row) => figureOf(row, share.key) > 0));
    const isOverlapped = rows.some((row) => figureOf(row, 'comm_overlapped_ns') > 0);
    const legend = isOverlapped ? [...used, {kind: 'collective', name: 'overlapped communication (not additive)', isHatched: true}] : used;
    return panel('breakdown', 'Where the time went', 'Time per rank, by activity. Identical ranks share a row.',
        barLegend(legend),
        el('div', {class: 'groups'}, ...rows.slice(0, GROUPS_DRAWN).map((row) => groupBar(row, longest))),
        rows.length > GROUPS_DRAWN ? el('p', {class: 'hint'}, `${countOf(rows.length - GROUPS_DRAWN, 'group')} more in the table.`) : null,
        el('details', {class: 'figures-table', open: rows.length > GROUPS_DRAWN || null}, el('summary', {}, 'As a table'), breakdownTable(rows)));
}

/** @param {BreakdownRow[]} rows */
function breakdownTable(rows) {
    /** @param {string} title @param {keyof BreakdownRow} key @param {string} meaning @returns {Column<BreakdownRow>} */
    const time = (title, key, meaning) => ({
        title, meaning, isNumber: true, key: (row) => /** @type {number | null} */ (row[key]),
        show: (row) => timeText(/** @type {number | null} */ (row[key])), exact: (row) => timeExact(/** @type {number | null} */ (row[key])),
    });
    return sortableTable('Time of each group of ranks', [
        {title: 'Ranks', key: (row) => row.name, show: (row) => row.name, exact: (row) => row.ranks ?? ''},
        {title: 'Count', isNumber: true, key: (row) => row.count, show: (row) => countOf(row.count ?? 1, 'rank')},
        time('Total', 'total_ns', 'from the first event of the run to the last'),
        ...SHARES.map((share) => time(share.name, share.key, share.meaning)),
        time('overlapped', 'comm_overlapped_ns', 'communication while the rank computes; a part of compute'),
    ], rows);
}
