// SPDX-License-Identifier: Apache-2.0
// sweep_plot.js - points as dots, and as lines across parallel axes.  SVG: it prints, and follows the colour scheme.

import {el, svg} from './dom.js';
import {niceStep} from './units.js';
import {sweepText} from './sweep_data.js';
/** @import {SweepRow, SweepTable} from './sweep_data.js' */

const SWEEP_COLOURS = ['compute', 'collective', 'memory', 'send', 'receive', 'phase', 'host', 'other'];
const SWEEP_MOST_LINES = 1500;
const SWEEP_EVEN_VALUES = 12;
const SWEEP_UNITS = /** @type {[number, string][]} */ ([[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']]);
const SWEEP_FRAME = {width: 900, height: 420, left: 84, right: 20, top: 16, bottom: 48};

/** A scale that maps values to 0 to 1. */
class SweepScale {
    /** isEven: values are evenly spaced, even if they are numbers.
     *  @param {SweepTable} table @param {number} column @param {boolean} isLog @param {boolean} [isEven] */
    constructor(table, column, isLog, isEven = false) {
        this.isText = isEven || !table.isNumber(column);
        this.texts = this.isText ? table.distinct(column).map(String) : [];
        const {from, to} = table.range(column);
        this.isLog = isLog && !this.isText && from > 0;
        const room = (to - from) * 0.04 || Math.abs(to) * 0.1 || 1;
        this.from = this.isText ? -0.5 : this.isLog ? from / 1.08 : from >= 0 && from < 0.4 * to ? 0 : from - room;
        this.to = this.isText ? this.texts.length - 0.5 : this.isLog ? to * 1.08 : to + room;
    }

    /** NaN: no position. @param {any} value */
    place(value) {
        const number = this.isText ? this.texts.indexOf(String(value)) : typeof value === 'number' ? value : NaN;
        if (this.isLog) return Math.log(number / this.from) / Math.log(this.to / this.from);
        return (number - this.from) / (this.to - this.from);
    }

    /** @param {number} most */
    ticks(most) {
        if (this.isText) return this.texts.map((text) => ({at: this.place(text), text}));
        const list = [];
        if (this.isLog) {
            const base = this.to / this.from < 300 ? 2 : 10;
            const step = base ** Math.max(1, Math.ceil(Math.log(this.to / this.from) / Math.log(base) / most));
            for (let v = base ** Math.ceil(Math.log(this.from) / Math.log(base) - 1e-9); v <= this.to && list.length < 50; v *= step) list.push(v);
        } else {
            const step = niceStep((this.to - this.from) / most);
            for (let k = Math.ceil(this.from / step); k * step <= this.to && list.length < 50; k++) list.push(k * step);
        }
        return list.map((v) => ({at: this.place(v), text: sweepShort(v)}));
    }
}

/** 1.2M, 35k. @param {number} value */
function sweepShort(value) {
    const size = Math.abs(value);
    const [scale, unit] = SWEEP_UNITS.find(([limit]) => size >= (limit === 1e3 ? 1e4 : limit)) ?? [1, ''];
    return `${Number((value / scale).toPrecision(4))}${unit}`;
}

/** The tooltip of a dot. @param {SweepTable} table @param {SweepRow} row @param {number[]} columns */
function sweepHint(table, row, columns) {
    return [`point ${row.point}`, ...columns.map((k) => `${table.columns[k].name}: ${sweepText(row.values[k])}`)].join('\n');
}

/** @param {SweepTable} table @param {SweepRow[]} rows
 *  @param {{x: number, y: number, group: number, logX: boolean, logY: boolean}} choice @param {(row: SweepRow) => void} onPick */
export function sweepScatter(table, rows, choice, onPick) {
    const {width, height, left, right, top, bottom} = SWEEP_FRAME;
    const x = new SweepScale(table, choice.x, choice.logX);
    const y = new SweepScale(table, choice.y, choice.logY);
    const groups = choice.group >= 0 ? table.distinct(choice.group).map(String) : [];
    const placeX = (/** @type {number} */ at) => left + at * (width - left - right);
    const placeY = (/** @type {number} */ at) => height - bottom - at * (height - top - bottom);
    const axisColumns = table.columns.flatMap((column, k) => (column.kind === 'axis' ? [k] : []));
    const dots = rows.flatMap((row) => {
        const at = {x: x.place(row.values[choice.x]), y: y.place(row.values[choice.y])};
        if (!Number.isFinite(at.x) || !Number.isFinite(at.y)) return [];
        const group = groups.length > 0 ? groups.indexOf(String(row.values[choice.group])) : 0;
        return [svg('circle', {cx: placeX(at.x).toFixed(1), cy: placeY(at.y).toFixed(1), r: 4.5, class: 'sweep-dot',
            style: `fill: var(--kind-${SWEEP_COLOURS[group % SWEEP_COLOURS.length]})`, onclick: () => onPick(row)},
        svg('title', {}, sweepHint(table, row, [...axisColumns, choice.y])))];
    });
    const picture = svg('svg', {viewBox: `0 0 ${width} ${height}`, class: 'sweep-plot', role: 'img',
        'aria-label': `${table.columns[choice.y].name} by ${table.columns[choice.x].name}, ${dots.length} points`},
    ...x.ticks(10).flatMap((tick) => [svg('line', {x1: placeX(tick.at), x2: placeX(tick.at), y1: top, y2: height - bottom, class: 'sweep-grid'}),
        svg('text', {x: placeX(tick.at), y: height - bottom + 18, 'text-anchor': 'middle'}, tick.text)]),
    ...y.ticks(8).flatMap((tick) => [svg('line', {x1: left, x2: width - right, y1: placeY(tick.at), y2: placeY(tick.at), class: 'sweep-grid'}),
        svg('text', {x: left - 8, y: placeY(tick.at) + 4, 'text-anchor': 'end'}, tick.text)]),
    svg('text', {x: (left + width - right) / 2, y: height - 8, 'text-anchor': 'middle', class: 'sweep-name'}, table.columns[choice.x].name),
    svg('text', {x: 14, y: height / 2, 'text-anchor': 'middle', class: 'sweep-name', transform: `rotate(-90 14 ${height / 2})`}, table.columns[choice.y].name),
    ...dots);
    const legend = groups.length > 0 && el('div', {class: 'sweep-legend'}, el('b', {}, table.columns[choice.group].name), ...groups.slice(0, 24).map((name, k) =>
        el('span', {}, el('i', {style: `background: var(--kind-${SWEEP_COLOURS[k % SWEEP_COLOURS.length]})`}), name)));
    return el('div', {}, picture, legend);
}

/** Parallel coordinates: each point is a line across the axes; the best are drawn last, in strong colours.
 *  @param {SweepTable} table @param {SweepRow[]} rows @param {(row: SweepRow) => void} onPick */
export function sweepParallel(table, rows, onPick) {
    const {width, height} = {width: 900, height: 320};
    const goal = table.goalColumn();
    const columns = [...table.columns.flatMap((column, k) => (column.kind === 'axis' && table.distinct(k).length > 1 ? [k] : [])).slice(0, 9), goal.column];
    const scales = columns.map((column) => new SweepScale(table, column, false, column !== goal.column && table.distinct(column).length <= SWEEP_EVEN_VALUES));
    const placeX = (/** @type {number} */ k) => 70 + k * (width - 140) / Math.max(1, columns.length - 1);
    const placeY = (/** @type {number} */ at) => height - 34 - at * (height - 74);
    const ordered = table.ordered(rows);
    const best = new Set(ordered.slice(0, 10));
    const lines = ordered.slice(0, SWEEP_MOST_LINES).reverse().map((row) => svg('polyline', {
        points: columns.map((column, k) => `${placeX(k).toFixed(1)},${placeY(scales[k].place(row.values[column]) || 0).toFixed(1)}`).join(' '),
        class: best.has(row) ? 'sweep-line best' : 'sweep-line', onclick: () => onPick(row),
    }, svg('title', {}, sweepHint(table, row, columns))));
    return svg('svg', {viewBox: `0 0 ${width} ${height}`, class: 'sweep-plot', role: 'img', 'aria-label': `the axes of ${lines.length} points, the ten best emphasized`},
        ...lines,
        ...columns.flatMap((column, k) => [
            svg('line', {x1: placeX(k), x2: placeX(k), y1: placeY(1), y2: placeY(0), class: 'sweep-axis'}),
            ...scales[k].ticks(5).map((tick) => svg('text', {x: placeX(k) + 5, y: placeY(tick.at) + 4, class: 'sweep-tick'}, tick.text)),
            svg('text', {x: placeX(k), y: k % 2 ? 14 : 28, 'text-anchor': 'middle', class: 'sweep-name'}, table.columns[column].name)]));
}
