// SPDX-License-Identifier: Apache-2.0
// flow_times.js - flow completion times and slowdowns (over the time of the flow alone), by size.

import {el, svg} from './dom.js';
import {listOf, panel} from './panel.js';
import {lineLegend, seriesClass} from './step_chart.js';
import {sortableTable} from './table.js';
import {countOf, countText, isKnown, shareText, sizeText, timeExact, timeText} from './units.js';
/** @import {FlowClass, Maybe, Run} from './types.js' */

const FLOW_WIDTH = 470;
const FLOW_HEIGHT = 250;
const FLOW_LEFT = 46;
const FLOW_RIGHT = 14;
const FLOW_TOP = 10;
const FLOW_BOTTOM = 40;
const SLOW_LEFT = 116;
const SLOW_ROW = 34;

/** "4 KiB to 64 KiB" @param {FlowClass} one */
export function sizeClassName(one) {
    if (!isKnown(one.up_to_bytes)) return one.above_bytes > 0 ? `above ${sizeText(one.above_bytes)}` : 'all';
    return one.above_bytes > 0 ? `${sizeText(one.above_bytes)} to ${sizeText(one.up_to_bytes)}` : `up to ${sizeText(one.up_to_bytes)}`;
}

/** Axis labels at 1, 2 or 5 times a power of ten, at least a factor of two apart. @param {number} least @param {number} most */
export function logTicks(least, most) {
    const marks = [];
    for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power++) {
        for (const digit of [1, 2, 5]) {
            const value = digit * 10 ** power;
            if (value >= least * (1 - 1e-9) && value <= most * (1 + 1e-9)) marks.push(value);
        }
    }
    const whole = marks.filter((value) => /^1(e|0*$)|^0\.0*1$/.test(String(value)));
    return marks.length <= 7 ? marks : whole.length >= 2 ? whole : marks.filter((_, k) => k % 2 === 0);
}

/** A range on a logarithmic axis, never empty. @param {number[]} values */
function logRange(values) {
    const least = Math.min(...values);
    const most = Math.max(...values);
    return most > least * 1.02 ? {least, most} : {least: least / 1.5, most: most * 1.5};
}

/** @param {{least: number, most: number}} range @param {number} value @param {number} left @param {number} right */
function logX(range, value, left, right) {
    return left + Math.log(value / range.least) / Math.log(range.most / range.least) * (right - left);
}

/** The cumulative distribution: share of flows completed within a time. @param {FlowClass[]} classes */
function flowChart(classes) {
    const times = classes.flatMap((one) => listOf(one.fct_ns)).filter((ns) => ns > 0);
    const range = logRange(times);
    const right = FLOW_WIDTH - FLOW_RIGHT;
    const x = (/** @type {number} */ ns) => logX(range, Math.max(ns, range.least), FLOW_LEFT, right);
    const y = (/** @type {number} */ share) => FLOW_HEIGHT - FLOW_BOTTOM - share * (FLOW_HEIGHT - FLOW_BOTTOM - FLOW_TOP);
    const lines = classes.map((one, k) => {
        const list = listOf(one.fct_ns);
        const path = list.map((ns, i) => `${i === 0 ? 'M' : 'L'}${x(ns).toFixed(1)} ${y(i / (list.length - 1)).toFixed(1)}`).join('');
        return svg('g', {class: seriesClass(k)}, svg('path', {class: 'line', d: path}),
            svg('title', {}, `${sizeClassName(one)}: half within ${timeText(list[Math.floor(list.length / 2)])}, 99\u00a0% within ${timeText(one.fct_p99_ns)}, all within ${timeText(list[list.length - 1])}`));
    });
    return svg('svg', {class: 'chart', viewBox: `0 0 ${FLOW_WIDTH} ${FLOW_HEIGHT}`, role: 'img', 'aria-label': 'Share of the flows that were done within a time, by size'},
        ...[0, 0.25, 0.5, 0.75, 1].map((share) => svg('g', {}, svg('line', {class: 'grid', x1: FLOW_LEFT, x2: right, y1: y(share), y2: y(share)}),
            svg('text', {class: 'axis', x: FLOW_LEFT - 6, y: y(share) + 4, 'text-anchor': 'end'}, shareText(share).replace('.0', '')))),
        ...logTicks(range.least, range.most).map((ns) => svg('text', {class: 'axis', x: x(ns), y: FLOW_HEIGHT - 24, 'text-anchor': 'middle'}, timeText(ns))),
        svg('text', {class: 'axis', x: (FLOW_LEFT + right) / 2, y: FLOW_HEIGHT - 6, 'text-anchor': 'middle'}, 'completion time'), ...lines);
}

/** @param {Maybe} value */
function slowText(value) {
    return isKnown(value) ? `${value.toFixed(value < 100 ? 2 : 0)}\u00a0\u00d7` : '\u2013';
}

/** Median, 95th and 99th percentile and maximum for each size. @param {FlowClass[]} classes */
function slowChart(classes) {
    const known = classes.filter((one) => isKnown(one.slowdown_max));
    const most = Math.max(1.2, ...known.map((one) => one.slowdown_max ?? 1));
    const range = {least: 1, most};
    const height = known.length * SLOW_ROW + 50;
    const right = FLOW_WIDTH - 26;
    const x = (/** @type {Maybe} */ value) => logX(range, Math.max(1, value ?? 1), SLOW_LEFT, right);
    const rows = known.map((one, k) => {
        const y = 16 + k * SLOW_ROW + SLOW_ROW / 2;
        return svg('g', {class: seriesClass(classes.indexOf(one))},
            svg('text', {class: 'heat-name', x: SLOW_LEFT - 10, y: y + 4, 'text-anchor': 'end'}, sizeClassName(one)),
            svg('line', {class: 'slow-whole', x1: x(one.slowdown_p50), x2: x(one.slowdown_max), y1: y, y2: y}),
            svg('line', {class: 'slow-most', x1: x(one.slowdown_p50), x2: x(one.slowdown_p95), y1: y, y2: y}),
            svg('line', {class: 'slow-tick', x1: x(one.slowdown_p99), x2: x(one.slowdown_p99), y1: y - 7, y2: y + 7}),
            svg('line', {class: 'slow-end', x1: x(one.slowdown_max), x2: x(one.slowdown_max), y1: y - 3, y2: y + 3}),
            svg('circle', {class: 'slow-dot', cx: x(one.slowdown_p50), cy: y, r: 5}),
            svg('title', {}, `${sizeClassName(one)}: p50 ${slowText(one.slowdown_p50)}, p95 ${slowText(one.slowdown_p95)}, p99 ${slowText(one.slowdown_p99)}, worst ${slowText(one.slowdown_max)} of the ideal time`));
    });
    return svg('svg', {class: 'chart', viewBox: `0 0 ${FLOW_WIDTH} ${height}`, role: 'img', 'aria-label': 'Slowdown of flows by size: median, 95, 99 percent and the worst'},
        ...logTicks(1, most).map((value) => svg('g', {}, svg('line', {class: 'grid', x1: x(value), x2: x(value), y1: 12, y2: height - 34}),
            svg('text', {class: 'axis', x: x(value), y: height - 20, 'text-anchor': 'middle'}, `${value}\u00a0\u00d7`))),
        svg('text', {class: 'axis', x: (SLOW_LEFT + right) / 2, y: height - 4, 'text-anchor': 'middle'}, 'slowdown: \u25cf p50, bar to p95, | p99, line to the worst'), ...rows);
}

/** @param {FlowClass[]} rows */
function flowTable(rows) {
    const middle = (/** @type {FlowClass} */ row) => listOf(row.fct_ns)[Math.floor(listOf(row.fct_ns).length / 2)];
    const last = (/** @type {FlowClass} */ row) => listOf(row.fct_ns)[listOf(row.fct_ns).length - 1];
    return sortableTable('Flows by size', [
        {title: 'Size', key: (row) => (isKnown(row.up_to_bytes) || row.above_bytes > 0 ? row.above_bytes : -1), show: (row) => sizeClassName(row)},
        {title: 'Flows', isNumber: true, key: (row) => row.flows, show: (row) => countText(row.flows)},
        {title: 'Moved', isNumber: true, key: (row) => row.bytes, show: (row) => sizeText(row.bytes), exact: (row) => `${countText(row.bytes)} B`},
        {title: 'Median time', isNumber: true, key: middle, show: (row) => timeText(middle(row)), exact: (row) => timeExact(middle(row))},
        {title: '99 % within', isNumber: true, key: (row) => row.fct_p99_ns, show: (row) => timeText(row.fct_p99_ns), exact: (row) => timeExact(row.fct_p99_ns)},
        {title: 'Longest', isNumber: true, key: last, show: (row) => timeText(last(row)), exact: (row) => timeExact(last(row))},
        {title: 'Slowdown p50', isNumber: true, key: (row) => row.slowdown_p50, show: (row) => slowText(row.slowdown_p50), meaning: 'Half of the flows took at most this many times the ideal time'},
        {title: 'p95', isNumber: true, key: (row) => row.slowdown_p95, show: (row) => slowText(row.slowdown_p95)},
        {title: 'p99', isNumber: true, key: (row) => row.slowdown_p99, show: (row) => slowText(row.slowdown_p99)},
        {title: 'Worst', isNumber: true, key: (row) => row.slowdown_max, show: (row) => slowText(row.slowdown_max)},
    ], rows);
}

/** @param {Run} run */
export function flowsPanel(run) {
    const times = run.fabric?.flow_times;
    if (!times?.all) return null;
    const classes = listOf(times.by_size);
    const all = times.all;
    const hasSlowdown = isKnown(all.slowdown_max);
    return panel('flows', 'Flow completion', `${countOf(all.flows, 'flow')}${hasSlowdown ? `; slowdown is the time over the ideal one: base round trip and the bytes at the speed of the slowest link, as in fct.txt` : ''}.`,
        lineLegend(classes.map(sizeClassName)),
        el('div', {class: 'flow-charts'}, flowChart(classes), hasSlowdown ? slowChart(classes) : null),
        flowTable(classes.length > 1 ? [...classes, all] : classes));
}
