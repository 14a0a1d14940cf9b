// SPDX-License-Identifier: Apache-2.0
// fabric.js - the packet network over time: links as a heat map, the longest queues as lines, pauses as both.

import {el} from './dom.js';
import {heatBar} from './bars.js';
import {heatMap} from './heatmap.js';
import {listOf, panel} from './panel.js';
import {stepChart} from './step_chart.js';
import {sortableTable} from './table.js';
import {countOf, countText, isKnown, rateText, shareText, sizeText, timeText} from './units.js';
/** @import {Column} from './table.js' */
/** @import {Fabric, FabricLink, Run} from './types.js' */

/** @param {Fabric} fabric @param {string[]} what */
function timeIsMissing(fabric, ...what) {
    return isKnown(fabric.column_ns) ? null
        : el('p', {class: 'hint'}, `What ${what.join(' ')} did over time was not recorded in this run: --approx skips intervals.`);
}

/** @param {FabricLink} link */
function hasValues(link) {
    return Array.isArray(link.values) && link.values.length > 0;
}

/** @param {FabricLink[]} rows @param {string} caption @param {Column<FabricLink>[]} more */
function linkFigures(rows, caption, more) {
    /** @type {Column<FabricLink>[]} */
    const columns = [
        {title: 'Link', key: (row) => row.name, show: (row) => row.name, meaning: 'A port and where its wire leads: switch8.3 is port 3 of switch 8'},
        {title: 'In use', isNumber: true, key: (row) => row.utilisation, show: (row) => el('span', {class: 'with-bar'}, heatBar(row.utilisation ?? 0), shareText(row.utilisation)), meaning: 'Share of the whole run in which it was sending'},
        {title: 'Moved', isNumber: true, key: (row) => row.bytes, show: (row) => sizeText(row.bytes), exact: (row) => `${countText(row.bytes)} B, with headers`},
        {title: 'Longest queue', isNumber: true, key: (row) => row.longest_queue_bytes, show: (row) => sizeText(row.longest_queue_bytes), exact: (row) => `${countText(row.longest_queue_bytes)} B`},
        {title: 'Bandwidth', isNumber: true, key: (row) => row.bandwidth_Bps, show: (row) => rateText(row.bandwidth_Bps)},
        ...more,
    ];
    return sortableTable(caption, columns, rows, {first: 8});
}

/** @param {Run} run */
export function linksPanel(run) {
    const fabric = run.fabric;
    const rows = listOf(fabric?.links?.rows);
    if (!fabric || rows.length === 0) return null;
    const left = fabric.links?.left_out ?? 0;
    const rest = listOf(fabric.links?.rest);
    const mean = rest.length > 0 ? rest.reduce((a, b) => a + b, 0) / rest.length : 0;
    const drawn = rows.filter(hasValues).map((row) => ({name: row.name, values: listOf(row.values), figure: shareText(row.utilisation)}));
    const words = `The ${countOf(rows.length, 'busiest link')}, the busiest first, each direction separately${left > 0 ? `; below them the mean of the ${countOf(left, 'other')} that carried anything` : ''}.`;
    const heat = isKnown(fabric.column_ns) && drawn.length > 0 ? heatMap({
        what: `Use of links over time. ${words}`, figureTitle: 'whole run', column_ns: fabric.column_ns, end_ns: fabric.end_ns ?? 0,
        rows: rest.length > 0 ? [...drawn, {name: `mean of ${countText(left)} others`, values: rest, figure: shareText(mean), isRest: true}] : drawn,
        words: (_, value) => `in use ${shareText(value)}`,
    }) : timeIsMissing(fabric, 'links');
    return panel('links', 'Links over time', words, heat, linkFigures(rows, 'Links, the busiest first', []));
}

/** @param {Run} run */
export function queuesPanel(run) {
    const fabric = run.fabric;
    const rows = listOf(fabric?.queues?.rows);
    if (!fabric || rows.length === 0) return null;
    const worst = rows[0];
    const drawn = rows.filter(hasValues);
    const others = fabric.queues?.left_out ?? 0;
    return panel('queues', 'Queues', `The longest, at ${worst.name}, held ${sizeText(worst.longest_queue_bytes)}. The longest in each interval, at the ${countOf(rows.length, 'worst port')} of switches${others > 0 ? `; ${countText(others)} more had any` : ''}.`,
        isKnown(fabric.column_ns) && drawn.length > 0 ? stepChart({
            what: 'Queues over time', column_ns: fabric.column_ns, end_ns: fabric.end_ns ?? 0, text: sizeText, isBytes: true,
            series: drawn.map((row) => ({name: row.name, values: listOf(row.values)})),
        }) : timeIsMissing(fabric, 'queues'),
        linkFigures(rows, 'Queues, the longest first', []));
}

/** @type {Column<FabricLink>[]} */
const PAUSE_COLUMNS = [
    {title: 'Pauses', isNumber: true, key: (row) => row.pauses, show: (row) => countText(row.pauses), meaning: 'PFC pause frames it received'},
    {title: 'Paused', isNumber: true, key: (row) => row.paused_ns, show: (row) => timeText(row.paused_ns), meaning: 'Time in which some class was paused'},
];

/** @param {Run} run */
export function pausesPanel(run) {
    const fabric = run.fabric;
    const figures = fabric?.figures;
    const rows = listOf(fabric?.pauses?.rows);
    if (!fabric || !isKnown(figures?.pauses)) return null;
    const notes = listOf(fabric.notes);
    if (rows.length === 0) return panel('pauses', 'Pauses', 'No port was paused.', notes.length > 0 ? el('pre', {class: 'fabric-notes'}, notes.join('\n')) : null);
    const drawn = rows.filter(hasValues).map((row) => ({name: row.name, values: listOf(row.values), figure: shareText(row.paused_share)}));
    const ports = listOf(fabric.paused_ports);
    return panel('pauses', 'Pauses', `${countOf(figures.pauses, 'pause')} at ${countOf(figures.paused_ports, 'port')}. Above: how many ports were paused at a time; below: the ${countOf(rows.length, 'port')} that were paused longest.`,
        notes.length > 0 ? el('pre', {class: 'fabric-notes'}, notes.join('\n')) : null,
        isKnown(fabric.column_ns) && ports.length > 0 ? stepChart({
            what: 'Ports that are paused, over time', column_ns: fabric.column_ns, end_ns: fabric.end_ns ?? 0, text: (value) => `${Number(value.toFixed(2))}\u00a0ports`,
            series: [{name: 'paused, on average', values: ports}],
        }) : timeIsMissing(fabric, 'pauses'),
        isKnown(fabric.column_ns) && drawn.length > 0 ? heatMap({
            what: 'Pauses of ports over time', figureTitle: 'whole run', rows: drawn, column_ns: fabric.column_ns, end_ns: fabric.end_ns ?? 0,
            words: (_, value) => `paused ${shareText(value)} of that time`,
        }) : null,
        linkFigures(rows, 'Ports, those paused longest first', PAUSE_COLUMNS));
}
