// SPDX-License-Identifier: Apache-2.0
// memory.js - memory over time, compared with the capacity of a rank.

import {el, svg} from './dom.js';
import {listOf, missingPanel, panel} from './panel.js';
import {sortableTable} from './table.js';
import {countOf, countText, isKnown, shareText, sizeText, timeText, timeTicks} from './units.js';
/** @import {Column} from './table.js' */
/** @import {Maybe, MemorySeries, Run} from './types.js' */

const WIDTH = 960;
const HEIGHT = 260;
const LEFT = 76;
const BOTTOM = 26;
const TOP = 14;
const SERIES_DRAWN = 24;

/** @typedef {{from: number, to: number, most: number}} Range */

/** @param {Range} range @param {number} ns */
function chartX(range, ns) {
    return LEFT + (ns - range.from) / Math.max(1, range.to - range.from) * (WIDTH - LEFT - 8);
}

/** @param {Range} range @param {number} bytes */
function chartY(range, bytes) {
    return HEIGHT - BOTTOM - bytes / range.most * (HEIGHT - BOTTOM - TOP);
}

/** A step function: each value holds until the next. @param {Range} range @param {MemorySeries} series */
function stepPath(range, series) {
    let path = '';
    let y = '';
    series.t_ns.forEach((ns, k) => {
        const x = chartX(range, ns).toFixed(1);
        const next = chartY(range, series.bytes[k] ?? 0).toFixed(1);
        path += k === 0 ? `M${x} ${next}` : `L${x} ${y}L${x} ${next}`;
        y = next;
    });
    return y === '' ? '' : `${path}L${chartX(range, range.to).toFixed(1)} ${y}`;
}

/** Powers of two, so that labels are whole KiB, MiB, GiB. @param {number} most */
function sizeTicks(most) {
    let step = 1;
    while (most / step > 7) step *= 2;
    const ticks = [];
    for (let k = 0; k * step <= most; k++) ticks.push(k * step);
    return ticks;
}

/** @param {Range} range @param {number} start  the origin of the times */
function chartAxes(range, start) {
    const marks = sizeTicks(range.most).map((bytes) => svg('g', {},
        svg('line', {class: 'grid', x1: LEFT, x2: WIDTH - 8, y1: chartY(range, bytes), y2: chartY(range, bytes)}),
        svg('text', {class: 'axis', x: LEFT - 8, y: chartY(range, bytes) + 4, 'text-anchor': 'end'}, sizeText(bytes))));
    const times = timeTicks(range.from - start, range.to - start, 7).map(({at, text}) =>
        svg('text', {class: 'axis', x: chartX(range, at + start), y: HEIGHT - 8, 'text-anchor': 'middle'}, text));
    return svg('g', {}, ...marks, ...times);
}

/** The value of a series at a time. @param {MemorySeries} series @param {number} ns */
function memoryAt(series, ns) {
    let low = 0;
    let high = series.t_ns.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (series.t_ns[middle] <= ns) low = middle + 1;
        else high = middle;
    }
    return low > 0 ? series.bytes[low - 1] : null;
}

/** A line at the mouse, and the values of the series there. @param {SVGSVGElement} chart @param {Range} range
 *  @param {MemorySeries[]} series @param {HTMLElement} words @param {number} start */
function addCrosshair(chart, range, series, words, start) {
    const line = svg('line', {class: 'crosshair', y1: TOP, y2: HEIGHT - BOTTOM, visibility: 'hidden'});
    chart.append(line);
    chart.addEventListener('pointermove', (event) => {
        const box = chart.getBoundingClientRect();
        const x = Math.max(LEFT, Math.min(WIDTH - 8, (event.clientX - box.left) / box.width * WIDTH));
        const ns = range.from + (x - LEFT) / (WIDTH - LEFT - 8) * (range.to - range.from);
        line.setAttribute('x1', String(x));
        line.setAttribute('x2', String(x));
        line.setAttribute('visibility', 'visible');
        const values = series.slice(0, 6).map((one) => `${one.name} ${sizeText(memoryAt(one, ns))}`);
        words.textContent = `at ${timeText(ns - start)}: ${values.join(', ')}`;
    });
    chart.addEventListener('pointerleave', () => {
        line.setAttribute('visibility', 'hidden');
        words.textContent = '\u00a0';
    });
}

/** @param {Run} run */
export function memoryPanel(run) {
    const series = listOf(run.memory?.series).filter((one) => one.t_ns?.length > 0);
    if (series.length === 0) return missingPanel('memory', 'Memory', 'Neither the timeline nor the traces record memory in use. Traces of orrery stage do.');
    const capacity = run.memory?.capacity_bytes;
    const sorted = [...series].sort((a, b) => (b.peak_bytes ?? 0) - (a.peak_bytes ?? 0));
    const peak = Math.max(1, ...series.map((one) => one.peak_bytes ?? one.bytes.reduce((a, b) => Math.max(a, b), 0)));
    const isOver = isKnown(capacity) && peak > capacity;
    const start = run.timeline?.start_ns ?? 0;
    /* A capacity far above the data would flatten the chart: then it is only mentioned. */
    const isDrawn = isKnown(capacity) && capacity < peak * 4;
    const range = {
        from: Math.min(...series.map((one) => one.t_ns[0])), to: Math.max(run.timeline?.end_ns ?? 0, ...series.map((one) => one.t_ns[one.t_ns.length - 1])),
        most: (isDrawn ? Math.max(peak, capacity) : peak) * 1.06,
    };
    const words = isKnown(capacity) ? `Peak ${sizeText(peak)} of ${sizeText(capacity)} (${shareText(peak / capacity)})${isOver ? ': it does not fit' : ''}.` : `Peak ${sizeText(peak)}; the capacity of a rank is not known.`;
    const readout = el('p', {class: 'hint readout'}, '\u00a0');
    const chart = svg('svg', {class: 'chart', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `Memory over time. ${words}`},
        chartAxes(range, start), memoryAreas(range, sorted), isDrawn ? capacityLine(range, /** @type {number} */ (capacity), isOver) : null);
    addCrosshair(chart, range, sorted, readout, start);
    return panel('memory', 'Memory', words, chart, readout, memoryTable(sorted, capacity));
}

/** @param {Range} range @param {MemorySeries[]} sorted  largest first: drawn first, so that smaller ones lie over it */
function memoryAreas(range, sorted) {
    return svg('g', {}, ...sorted.slice(0, SERIES_DRAWN).map((one, k) => {
        const path = stepPath(range, one);
        const base = (HEIGHT - BOTTOM).toFixed(1);
        const area = `${path}V${base}H${chartX(range, one.t_ns[0]).toFixed(1)}Z`;
        return svg('g', {class: `series series-${Math.min(k, 5)}`}, svg('path', {class: 'area', d: area}), svg('path', {class: 'line', d: path}),
            svg('title', {}, `${one.name}: peak ${sizeText(one.peak_bytes)}`));
    }));
}

/** @param {Range} range @param {number} capacity @param {boolean} isOver */
function capacityLine(range, capacity, isOver) {
    const y = chartY(range, capacity);
    return svg('g', {class: isOver ? 'capacity over' : 'capacity'}, svg('line', {x1: LEFT, x2: WIDTH - 8, y1: y, y2: y}),
        svg('text', {x: WIDTH - 12, y: y - 5, 'text-anchor': 'end'}, `capacity ${sizeText(capacity)}`));
}

/** @param {MemorySeries[]} series @param {Maybe} capacity */
function memoryTable(series, capacity) {
    /** @type {Column<MemorySeries>[]} */
    const columns = [
        {title: 'Ranks', key: (row) => row.name, show: (row) => el('span', {class: 'chip'}, el('i', {class: `swatch series-${Math.min(series.indexOf(row), 5)}`}), row.name)},
        {title: 'Peak', isNumber: true, key: (row) => row.peak_bytes, show: (row) => sizeText(row.peak_bytes), exact: (row) => `${countText(row.peak_bytes)} B`},
        {title: 'Of the capacity', isNumber: true, key: (row) => row.peak_bytes, show: (row) => (isKnown(capacity) && isKnown(row.peak_bytes) ? shareText(row.peak_bytes / capacity) : shareText(null))},
        {title: 'Changes', isNumber: true, key: (row) => row.t_ns.length, show: (row) => countOf(row.t_ns.length, 'point')},
    ];
    return sortableTable('Peak memory', columns, series, {first: 12});
}
