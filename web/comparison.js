// SPDX-License-Identifier: Apache-2.0
// comparison.js - two or more runs side by side; the first is the baseline.

import {el} from './dom.js';
import {swingBar} from './bars.js';
import {kindClass} from './palette.js';
import {listOf, panel} from './panel.js';
import {sortableTable} from './table.js';
import {changeText, countText, isKnown, roughText, shareText, timeExact, timeText} from './units.js';
/** @import {Column} from './table.js' */
/** @import {ComparisonRow, Headline, Maybe, ReportDocument, Run} from './types.js' */

/** How a figure is shown, and whether more of it is better.
 *  @type {{name: string, key: keyof Headline, show: (value: Maybe) => string, isMoreBetter: boolean | null}[]} */
const FIGURES = [
    {name: 'Time', key: 'time_ns', show: timeText, isMoreBetter: false},
    {name: 'Throughput', key: 'tokens_per_s', show: (value) => (isKnown(value) ? `${roughText(Math.round(value))}\u00a0tokens/s` : roughText(value)), isMoreBetter: true},
    {name: 'Per device', key: 'tokens_per_s_per_device', show: (value) => (isKnown(value) ? `${roughText(Math.round(value))}\u00a0tokens/s` : roughText(value)), isMoreBetter: true},
    {name: 'First token', key: 'first_token_ns', show: timeText, isMoreBetter: false},
    {name: 'Next token', key: 'next_token_ns', show: timeText, isMoreBetter: false},
    {name: 'MFU', key: 'mfu', show: shareText, isMoreBetter: true},
    {name: 'Exposed communication', key: 'exposed_comm_ns', show: timeText, isMoreBetter: false},
    {name: 'Exposed share', key: 'exposed_comm_share', show: shareText, isMoreBetter: false},
    {name: 'Ranks', key: 'ranks', show: countText, isMoreBetter: null},
    {name: 'Events', key: 'events', show: countText, isMoreBetter: null},
];

/** The error of a model is neither better nor worse than the measurement. @param {number} before @param {number} after @param {boolean | null} isMoreBetter @param {boolean} isModelError */
function changeMark(before, after, isMoreBetter, isModelError) {
    if (before === 0 || before === after) return null;
    const share = after / before - 1;
    if (isModelError) return el('span', {class: 'change even', title: 'one of the two was measured, the other simulated: the error of the model'}, `${changeText(share)} model error`);
    const tone = isMoreBetter === null || Math.abs(share) < 0.0005 ? 'even' : (share > 0) === isMoreBetter ? 'better' : 'worse';
    const word = tone === 'even' ? '' : ` ${tone}`;
    return el('span', {class: `change ${tone}`, title: `against the first run${word}`}, `${changeText(share)}${word}`);
}

/** @param {Run} a @param {Run} b */
function isModelError(a, b) {
    return (a.kind === 'measured') !== (b.kind === 'measured');
}

/** @param {Run[]} runs */
function figureTable(runs) {
    const rows = FIGURES.filter(({key}) => runs.some((run) => isKnown(/** @type {number | null} */ (run.headline?.[key]))));
    return el('div', {class: 'table-scroll'}, el('table', {class: 'compare'},
        el('caption', {class: 'unseen'}, 'The runs side by side'),
        el('thead', {}, el('tr', {}, el('th', {scope: 'col'}, ''), ...runs.map((run, k) => el('th', {scope: 'col', class: 'number'},
            el('span', {class: 'run-name'}, run.name), el('span', {class: 'faint'}, k === 0 ? `baseline${run.kind ? `, ${run.kind}` : ''}` : run.kind ?? ''))))),
        el('tbody', {}, ...rows.map(({name, key, show, isMoreBetter}) => el('tr', {}, el('th', {scope: 'row'}, name), ...runs.map((run, k) => {
            const value = /** @type {number | null} */ (run.headline?.[key] ?? null);
            const first = /** @type {number | null} */ (runs[0].headline?.[key] ?? null);
            return el('td', {class: 'number', title: key.endsWith('_ns') ? timeExact(value) : null}, el('span', {}, show(value)),
                k > 0 && isKnown(value) && isKnown(first) ? changeMark(first, value, isMoreBetter, isModelError(runs[0], run)) : null);
        }))))));
}

/** The largest difference between any run and the first. @param {ComparisonRow} row */
function swing(row) {
    const first = row.ns[0] ?? 0;
    return row.ns.slice(1).map((value) => (value ?? 0) - first).reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a), 0);
}

/** Rows named after a kind are totals of it, one per kind; the others are operators. @param {ComparisonRow[]} rows */
function byKind(rows) {
    const kinds = rows.filter((row, k) => row.name === row.kind && rows.findIndex((one) => one.name === row.name) === k);
    return {kinds, operators: rows.filter((row) => !kinds.includes(row))};
}

/** @param {string} caption @param {Run[]} runs @param {ComparisonRow[]} rows */
function differenceTable(caption, runs, rows) {
    const most = Math.max(1, ...rows.map((row) => Math.abs(swing(row))));
    /** @type {Column<ComparisonRow>[]} */
    const columns = [
        {title: caption, key: (row) => row.name, show: (row) => el('span', {class: 'chip'}, el('i', {class: `swatch kind-${kindClass(row.kind)}`}), el('b', {}, row.name))},
        ...runs.map((run, k) => /** @type {Column<ComparisonRow>} */ ({
            title: run.name, isNumber: true, key: (row) => row.ns[k], show: (row) => timeText(row.ns[k]), exact: (row) => timeExact(row.ns[k]),
        })),
        {title: 'Difference', isNumber: true, key: (row) => Math.abs(swing(row)), meaning: 'the largest to the first run, sorted by size',
            show: (row) => el('span', {class: 'with-bar'}, swingBar(swing(row) / most), `${swing(row) > 0 ? '+' : swing(row) < 0 ? '\u2212' : ''}${timeText(Math.abs(swing(row)))}`)},
    ];
    return sortableTable(`Differences by ${caption.toLowerCase()}`, columns, rows, {first: 12});
}

/** @param {ReportDocument} doc */
export function comparisonPanel(doc) {
    if (doc.runs.length < 2) return null;
    const {kinds, operators} = byKind(listOf(doc.comparison?.rows));
    return panel('comparison', 'Comparison', `${doc.runs.length} runs; the first is the baseline.`, figureTable(doc.runs),
        kinds.length + operators.length > 0 ? el('h3', {}, 'Where they differ') : null,
        kinds.length > 0 ? differenceTable('Kind', doc.runs, kinds) : null,
        operators.length > 0 ? differenceTable('Operator', doc.runs, operators) : null);
}
