// SPDX-License-Identifier: Apache-2.0
// step_chart.js - a few values over time, one step per column, with a line at the mouse that shows all of them.

import {el, svg} from './dom.js';
import {niceStep, timeText, timeTicks} from './units.js';

const STEP_WIDTH = 960;
const STEP_HEIGHT = 230;
const STEP_LEFT = 84;
const STEP_RIGHT = 10;
const STEP_TOP = 12;
const STEP_BOTTOM = 28;

/** @typedef {{name: string, values: number[]}} StepSeries */

/** @typedef {{what: string, series: StepSeries[], column_ns: number, end_ns: number, text: (value: number) => string, isBytes?: boolean}} StepData */

/** @param {StepData} data @param {number} ns */
function stepX(data, ns) {
    return STEP_LEFT + ns / Math.max(1e-9, data.end_ns) * (STEP_WIDTH - STEP_LEFT - STEP_RIGHT);
}

/** @param {number} most @param {number} value */
function stepY(most, value) {
    return STEP_HEIGHT - STEP_BOTTOM - value / most * (STEP_HEIGHT - STEP_BOTTOM - STEP_TOP);
}

/** The path of a step function. @param {StepData} data @param {number} most @param {number[]} values */
export function stepsOf(data, most, values) {
    let path = '';
    let before = NaN;
    values.forEach((value, k) => {
        if (value === before) return;
        const x = stepX(data, k * data.column_ns).toFixed(1);
        const y = stepY(most, value).toFixed(1);
        path += k === 0 ? `M${x} ${y}` : `H${x}V${y}`;
        before = value;
    });
    return path === '' ? '' : `${path}H${stepX(data, data.end_ns).toFixed(1)}`;
}

/** Grid lines; for bytes at powers of two, so that labels are whole. @param {StepData} data @param {number} most */
function stepMarks(data, most) {
    let step = niceStep(most / 5);
    if (data.isBytes) for (step = 1; most / step > 6;) step *= 2;
    const marks = [];
    for (let k = 0; k * step <= most; k++) marks.push(k * step);
    return marks;
}

/** @param {StepData} data @param {number} most */
function stepAxes(data, most) {
    return svg('g', {},
        ...stepMarks(data, most).map((value) => svg('g', {},
            svg('line', {class: 'grid', x1: STEP_LEFT, x2: STEP_WIDTH - STEP_RIGHT, y1: stepY(most, value), y2: stepY(most, value)}),
            svg('text', {class: 'axis', x: STEP_LEFT - 8, y: stepY(most, value) + 4, 'text-anchor': 'end'}, data.text(value)))),
        ...timeTicks(0, data.end_ns, 8).map(({at, text}) => svg('text', {class: 'axis', x: stepX(data, at), y: STEP_HEIGHT - 8, 'text-anchor': 'middle'}, text)));
}

/** @param {SVGSVGElement} chart @param {StepData} data @param {HTMLElement} words */
function addStepPointer(chart, data, words) {
    const line = svg('line', {class: 'crosshair', y1: STEP_TOP, y2: STEP_HEIGHT - STEP_BOTTOM, visibility: 'hidden'});
    const columns = data.series[0]?.values.length ?? 0;
    let column = 0;
    const show = (/** @type {number} */ k) => {
        column = Math.max(0, Math.min(columns - 1, k));
        const from = column * data.column_ns;
        const to = column === columns - 1 ? data.end_ns : from + data.column_ns;
        const x = stepX(data, (from + to) / 2).toFixed(1);
        line.setAttribute('x1', x);
        line.setAttribute('x2', x);
        line.setAttribute('visibility', 'visible');
        words.textContent = `${timeText(from)} to ${timeText(to)}: ${data.series.map((one) => `${one.name} ${data.text(one.values[column])}`).join(', ')}`;
    };
    const leave = () => {
        line.setAttribute('visibility', 'hidden');
        words.textContent = '\u00a0';
    };
    chart.append(line);
    chart.addEventListener('pointermove', (event) => {
        const box = chart.getBoundingClientRect();
        const ns = ((event.clientX - box.left) / box.width * STEP_WIDTH - STEP_LEFT) / (STEP_WIDTH - STEP_LEFT - STEP_RIGHT) * data.end_ns;
        show(Math.floor(ns / data.column_ns));
    });
    chart.addEventListener('keydown', (event) => {
        if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
        show(column + (event.key === 'ArrowLeft' ? -1 : 1) * (event.shiftKey ? 10 : 1));
        event.preventDefault();
    });
    chart.addEventListener('pointerleave', leave);
    chart.addEventListener('blur', leave);
}

/** Colours repeat after six; dashes tell those apart, and all of them on grey paper. @param {number} k */
export function seriesClass(k) {
    return `series series-${k % 6} dash-${k % 8}`;
}

/** The legend. @param {string[]} names */
export function lineLegend(names) {
    return el('div', {class: 'legend line-legend'}, ...names.map((name, k) => el('span', {class: 'chip'},
        svg('svg', {class: `line-sample ${seriesClass(k)}`, viewBox: '0 0 26 8', 'aria-hidden': 'true'}, svg('path', {class: 'line', d: 'M0 4H26'})), name)));
}

/** @param {StepData} data */
export function stepChart(data) {
    const most = Math.max(1e-9, ...data.series.map((one) => one.values.reduce((a, b) => Math.max(a, b), 0))) * 1.05;
    const words = el('p', {class: 'hint readout no-print', 'aria-live': 'polite'}, '\u00a0');
    const base = STEP_HEIGHT - STEP_BOTTOM;
    const chart = svg('svg', {class: 'chart', viewBox: `0 0 ${STEP_WIDTH} ${STEP_HEIGHT}`, role: 'img', tabindex: 0, 'aria-label': `${data.what}. The arrow keys go through time.`},
        stepAxes(data, most),
        ...data.series.map((one, k) => {
            const path = stepsOf(data, most, one.values);
            return svg('g', {class: seriesClass(k)},
                k === 0 && path !== '' ? svg('path', {class: 'area', d: `${path}V${base}H${STEP_LEFT}z`}) : null, svg('path', {class: 'line', d: path}), svg('title', {}, one.name));
        }).reverse());
    addStepPointer(chart, data, words);
    return el('div', {}, data.series.length > 1 ? lineLegend(data.series.map((one) => one.name)) : null, chart, words);
}
