// SPDX-License-Identifier: Apache-2.0
// heatmap.js - rows of shares over time as colours: few shapes for any number of cells, so that it prints sharply and
// follows the colour scheme automatically.
//
// All cells of one shade are one path.  The value of a cell appears next to the mouse and below the drawing.  The arrow
// keys move from cell to cell, so no mouse is needed, and a column of figures means that colours are not needed.

import {el, svg} from './dom.js';
import {heatColour} from './palette.js';
import {timeText, timeTicks} from './units.js';

const HEAT_WIDTH = 960;
const HEAT_LEFT = 178;
const HEAT_RIGHT = 58;
const HEAT_ROW = 15;
const HEAT_TOP = 18;
const HEAT_SHADES = 20;

/** @typedef {{name: string, values: number[], figure: string, isRest?: boolean}} HeatRow */

/** @typedef {{what: string, figureTitle: string, rows: HeatRow[], column_ns: number, end_ns: number, words: (row: HeatRow, value: number) => string}} HeatData */

/** The x position of a time, between the names and the figures. @param {number} ns @param {number} end */
export function heatX(ns, end) {
    return HEAT_LEFT + ns / Math.max(1e-9, end) * (HEAT_WIDTH - HEAT_LEFT - HEAT_RIGHT);
}

/** Summary rows are set apart. @param {HeatRow[]} rows @param {number} k */
function heatY(rows, k) {
    return HEAT_TOP + k * HEAT_ROW + (rows[k]?.isRest ? 5 : 0);
}

/** Zero has no shade; anything above it has at least the first. @param {number} share */
export function shadeOf(share) {
    return share > 0 ? Math.max(1, Math.min(HEAT_SHADES, Math.ceil(share * HEAT_SHADES - 1e-9))) : 0;
}

/** Adjacent cells of one shade form one rectangle. @param {HeatData} data @returns {string[]}  a path for each shade */
export function heatPaths(data) {
    const paths = Array.from({length: HEAT_SHADES + 1}, () => '');
    data.rows.forEach((row, k) => {
        const y = heatY(data.rows, k);
        for (let from = 0, to = 0; from < row.values.length; from = to) {
            const shade = shadeOf(row.values[from]);
            while (to < row.values.length && shadeOf(row.values[to]) === shade) to++;
            if (shade === 0) continue;
            const x = heatX(from * data.column_ns, data.end_ns);
            const end = heatX(to === row.values.length ? data.end_ns : to * data.column_ns, data.end_ns);
            paths[shade] += `M${x.toFixed(1)} ${y}H${end.toFixed(1)}v${HEAT_ROW - 2}H${x.toFixed(1)}z`;
        }
    });
    return paths;
}

/** A shortened name; the full one is in the tooltip. @param {string} name */
function shortName(name) {
    return name.length > 27 ? `${name.slice(0, 26)}\u2026` : name;
}

/** @param {HeatData} data @param {number} height */
function heatFrame(data, height) {
    const {rows} = data;
    const right = HEAT_WIDTH - HEAT_RIGHT;
    const ticks = timeTicks(0, data.end_ns, 7).map(({at, text}) => svg('g', {},
        svg('line', {class: 'grid', x1: heatX(at, data.end_ns), x2: heatX(at, data.end_ns), y1: height - 22, y2: height - 18}),
        svg('text', {class: 'axis', x: heatX(at, data.end_ns), y: height - 6, 'text-anchor': 'middle'}, text)));
    return svg('g', {},
        svg('text', {class: 'axis', x: HEAT_WIDTH, y: 11, 'text-anchor': 'end'}, data.figureTitle),
        ...rows.map((row, k) => svg('g', {},
            svg('rect', {class: 'heat-row', x: HEAT_LEFT, y: heatY(rows, k), width: right - HEAT_LEFT, height: HEAT_ROW - 2}),
            svg('text', {class: 'heat-name', x: HEAT_LEFT - 8, y: heatY(rows, k) + 10.5, 'text-anchor': 'end'}, shortName(row.name), svg('title', {}, row.name)),
            svg('text', {class: 'heat-figure', x: HEAT_WIDTH, y: heatY(rows, k) + 10.5, 'text-anchor': 'end'}, row.figure))),
        ...ticks);
}

/** @param {HeatData} data @param {number} k @param {number} column */
function cellWords(data, k, column) {
    const row = data.rows[k];
    const to = column + 1 >= row.values.length ? data.end_ns : (column + 1) * data.column_ns;
    return `${row.name}, ${timeText(column * data.column_ns)} to ${timeText(to)}: ${data.words(row, row.values[column])}`;
}

/** The frame around the current cell, and its text next to the mouse and below. */
class HeatPointer {
    /** @param {SVGSVGElement} chart @param {HeatData} data */
    constructor(chart, data) {
        this.chart = chart;
        this.data = data;
        this.row = 0;
        this.column = 0;
        this.mark = svg('rect', {class: 'heat-mark', height: HEAT_ROW, visibility: 'hidden'});
        this.tip = el('div', {class: 'tip', hidden: true});
        this.words = el('p', {class: 'hint readout no-print', 'aria-live': 'polite'}, '\u00a0');
        chart.append(this.mark);
        chart.addEventListener('pointermove', (event) => this.point(event));
        chart.addEventListener('pointerleave', () => this.leave());
        chart.addEventListener('blur', () => this.leave());
        chart.addEventListener('keydown', (event) => this.key(event));
    }

    /** @param {PointerEvent} event */
    point(event) {
        const {data} = this;
        const box = this.chart.getBoundingClientRect();
        const scale = HEAT_WIDTH / box.width;
        const x = (event.clientX - box.left) * scale;
        const y = (event.clientY - box.top) * scale;
        const row = data.rows.findIndex((_, k) => y >= heatY(data.rows, k) && y < heatY(data.rows, k) + HEAT_ROW);
        const ns = (x - HEAT_LEFT) / (HEAT_WIDTH - HEAT_LEFT - HEAT_RIGHT) * data.end_ns;
        if (row < 0 || ns < 0 || ns >= data.end_ns) {
            this.leave();
            return;
        }
        this.show(row, Math.floor(ns / data.column_ns));
        this.tip.hidden = false;
        this.tip.textContent = this.words.textContent;
        const left = event.clientX + 14;
        this.tip.style.left = `${Math.max(4, left + this.tip.offsetWidth > window.innerWidth ? event.clientX - 14 - this.tip.offsetWidth : left)}px`;
        this.tip.style.top = `${event.clientY + 16}px`;
    }

    /** @param {KeyboardEvent} event */
    key(event) {
        const steps = /** @type {Record<string, [number, number]>} */ ({ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]});
        const step = steps[event.key];
        if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
        this.show(this.row + step[0], this.column + step[1] * (event.shiftKey ? 10 : 1));
        event.preventDefault();
    }

    /** @param {number} row @param {number} column */
    show(row, column) {
        const {data, mark} = this;
        this.row = Math.max(0, Math.min(data.rows.length - 1, row));
        this.column = Math.max(0, Math.min(data.rows[this.row].values.length - 1, column));
        const x = heatX(this.column * data.column_ns, data.end_ns);
        const end = heatX(Math.min(data.end_ns, (this.column + 1) * data.column_ns), data.end_ns);
        mark.setAttribute('x', (x - 1).toFixed(1));
        mark.setAttribute('y', String(heatY(data.rows, this.row) - 1));
        mark.setAttribute('width', (end - x + 2).toFixed(1));
        mark.setAttribute('visibility', 'visible');
        this.words.textContent = cellWords(data, this.row, this.column);
    }

    leave() {
        this.tip.hidden = true;
        this.mark.setAttribute('visibility', 'hidden');
        this.words.textContent = '\u00a0';
    }
}

/** @param {HeatData} data */
export function heatMap(data) {
    const height = heatY(data.rows, data.rows.length - 1) + HEAT_ROW + 24;
    const chart = svg('svg', {class: 'heatmap', viewBox: `0 0 ${HEAT_WIDTH} ${height}`, role: 'img', tabindex: 0, 'aria-label': `${data.what}. The arrow keys go from cell to cell.`},
        heatFrame(data, height),
        ...heatPaths(data).map((path, shade) => (path ? svg('path', {d: path, style: `fill:${heatColour(shade / HEAT_SHADES)}`}) : null)));
    const pointer = new HeatPointer(chart, data);
    return el('div', {class: 'heatmap-place'},
        el('div', {class: 'heat-legend', 'aria-hidden': 'true'}, '0\u00a0%', el('span', {class: 'heat-scale'}), '100\u00a0%'),
        chart, pointer.words, pointer.tip);
}
