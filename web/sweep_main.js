// SPDX-License-Identifier: Apache-2.0
// sweep_main.js - the page of a sweep: results, filters, plots, table.

import {byId, el} from './dom.js';
import {panel} from './panel.js';
import {sortableTable} from './table.js';
import {themeButton} from './theme.js';
import {countOf, countText} from './units.js';
import {SweepTable, sweepText} from './sweep_data.js';
import {sweepParallel, sweepScatter} from './sweep_plot.js';
/** @import {SweepRow} from './sweep_data.js' */

const SWEEP_FEW_VALUES = 16;

/** @param {string} label @param {[number, string][]} choices @param {number} chosen @param {(value: number) => void} onChange */
function sweepSelect(label, choices, chosen, onChange) {
    const select = el('select', {'aria-label': label, onchange: () => onChange(Number(select.value))},
        ...choices.map(([value, text]) => el('option', {value, selected: value === chosen}, text)));
    return el('label', {class: 'sweep-field'}, `${label} `, select);
}

/** @param {string} label @param {boolean} isOn @param {(isOn: boolean) => void} onChange */
function sweepCheck(label, isOn, onChange) {
    const box = el('input', {type: 'checkbox', checked: isOn, onchange: () => onChange(box.checked)});
    return el('label', {class: 'check'}, box, ` ${label}`);
}

class SweepPage {
    /** @param {SweepTable} table */
    constructor(table) {
        this.table = table;
        this.shown = table.rows;
        const axes = table.columns.flatMap((column, k) => (column.kind === 'axis' ? [k] : []));
        const varying = axes.filter((k) => table.distinct(k).length > 1);
        const goal = table.goalColumn().column;
        this.choice = {x: varying[0] ?? 0, y: goal, group: varying[1] ?? -1, logX: false, logY: false};
        this.axes = axes;
        this.parts = {best: el('div'), plot: el('div'), parallel: el('div'), rows: el('div'), count: el('p', {class: 'hint', role: 'status'}), picked: el('div')};
    }

    show() {
        const {table} = this;
        byId('top').replaceChildren(
            el('div', {class: 'brand'}, el('span', {class: 'mark', 'aria-hidden': 'true'}), 'Orrery'),
            el('h1', {}, table.title), el('div', {class: 'top-tools'}, themeButton(() => undefined)));
        const {points, failed, open} = table.counts;
        const panels = [
            panel('result', 'Best points', `${countOf(points, 'point')} of orrery ${table.commands}; ${countText(failed)} failed, ${countText(open)} not computed`, this.parts.best),
            panel('filters', 'Filters', 'Everything below shows the points that pass them.', ...this.filterFields(), this.parts.count),
            panel('plot', 'Plot', 'Click on a point for its figures.', this.plotFields(), this.parts.plot, this.parts.picked),
            panel('parallel', 'All axes', 'Each point is a line; the ten best are emphasized.', this.parts.parallel),
            panel('points', 'Points', 'Click on a heading to sort.', this.parts.rows),
        ];
        if (table.failures.length > 0) panels.push(this.failurePanel());
        byId('content').replaceChildren(...panels);
        byId('nav').replaceChildren(...panels.map((part) => el('a', {href: `#${part.id}`}, part.dataset.title)));
        byId('foot').replaceChildren('orrery sweep');
        this.update();
    }

    /** A filter per axis: checkboxes for few values, a range for many. */
    filterFields() {
        return [...this.axes, this.table.goalColumn().column].filter((k, place, all) => all.indexOf(k) === place && this.table.distinct(k).length > 1).map((k) => {
            const values = this.table.distinct(k);
            const isMany = values.length > SWEEP_FEW_VALUES && this.table.isNumber(k);
            return el('div', {class: 'sweep-filter'}, el('b', {}, this.table.columns[k].name), ...(isMany ? this.rangeFields(k) : this.valueBoxes(k, values.map(String))));
        });
    }

    /** @param {number} column @param {string[]} values */
    valueBoxes(column, values) {
        const chosen = new Set(values);
        return values.slice(0, 200).map((value) => sweepCheck(value, true, (isOn) => {
            if (isOn) chosen.add(value); else chosen.delete(value);
            if (chosen.size === values.length) this.table.filters.delete(column);
            else this.table.filters.set(column, {values: chosen, from: 0, to: 0});
            this.update();
        }));
    }

    /** @param {number} column */
    rangeFields(column) {
        const {from, to} = this.table.range(column);
        const now = {values: null, from, to};
        const field = (/** @type {'from' | 'to'} */ end) => {
            const input = el('input', {type: 'number', step: 'any', value: now[end], 'aria-label': `${this.table.columns[column].name} ${end}`, onchange: () => {
                now[end] = input.value === '' ? (end === 'from' ? from : to) : Number(input.value);
                this.table.filters.set(column, now);
                this.update();
            }});
            return el('label', {class: 'sweep-field'}, `${end} `, input);
        };
        return [field('from'), field('to')];
    }

    plotFields() {
        /** @type {[number, string][]} */
        const numbers = this.table.columns.flatMap((column, k) => (this.table.isNumber(k) ? [/** @type {[number, string]} */ ([k, column.name])] : []));
        /** @type {[number, string][]} */
        const any = this.table.columns.map((column, k) => [k, column.name]);
        /** @type {[number, string][]} */
        const few = [[-1, 'one colour'], .../** @type {[number, string][]} */ (any.filter(([k]) => this.table.columns[k].kind === 'axis' || this.table.distinct(k).length <= SWEEP_FEW_VALUES))];
        const set = (/** @type {'x' | 'y' | 'group'} */ key) => (/** @type {number} */ value) => {
            this.choice[key] = value;
            this.draw();
        };
        return el('div', {class: 'sweep-fields no-print'}, sweepSelect('x', any, this.choice.x, set('x')), sweepSelect('y', numbers, this.choice.y, set('y')),
            sweepSelect('colour', few, this.choice.group, set('group')),
            sweepCheck('log x', this.choice.logX, (isOn) => { this.choice.logX = isOn; this.draw(); }),
            sweepCheck('log y', this.choice.logY, (isOn) => { this.choice.logY = isOn; this.draw(); }));
    }

    failurePanel() {
        const rows = this.table.failures;
        return panel('failures', 'Failures', `${countOf(rows.length, 'point')}, each with its reason`, sortableTable('failures', [
            {title: 'point', show: (row) => row.point, key: (row) => row.point, isNumber: true},
            ...this.axes.map((k) => ({title: this.table.columns[k].name, show: (/** @type {SweepRow} */ row) => sweepText(row.values[k])})),
            {title: 'reason', show: (row) => row.error, key: (row) => row.error ?? ''}], rows));
    }

    /** @param {SweepRow[]} rows @param {string} caption @param {number} [first] */
    rowTable(rows, caption, first) {
        const columns = this.table.columns.flatMap((column, k) => (column.kind !== 'figure' || k === this.table.goalColumn().column ? [k] : []));
        return sortableTable(caption, [
            {title: 'point', show: (row) => row.point, key: (row) => row.point, isNumber: true},
            ...columns.map((k) => ({title: this.table.columns[k].name, show: (/** @type {SweepRow} */ row) => sweepText(row.values[k]), key: (/** @type {SweepRow} */ row) => /** @type {any} */ (row.values[k]),
                isNumber: this.table.isNumber(k), exact: (/** @type {SweepRow} */ row) => String(row.values[k])}))], rows, {first, onRow: (row) => this.pick(row)});
    }

    /** All figures of a point. @param {SweepRow} row */
    pick(row) {
        this.parts.picked.replaceChildren(el('h3', {}, `Point ${row.point}`), el('dl', {class: 'sweep-figures'},
            ...this.table.columns.flatMap((column, k) => [el('dt', {}, column.name), el('dd', {}, sweepText(row.values[k]))])));
        this.parts.picked.scrollIntoView({block: 'nearest'});
    }

    draw() {
        this.parts.plot.replaceChildren(this.shown.length > 0 ? sweepScatter(this.table, this.shown, this.choice, (row) => this.pick(row)) : el('p', {class: 'hint'}, 'No point passes the filters.'));
    }

    update() {
        this.shown = this.table.shown();
        this.parts.count.textContent = `${countText(this.shown.length)} of ${countOf(this.table.rows.length, 'point')} shown`;
        const best = this.table.ordered(this.shown);
        this.parts.best.replaceChildren(el('p', {class: 'hint'}, this.table.goal ? `by ${this.table.goal}` : 'the sweep has no goal: smallest first figure first'), this.rowTable(best.slice(0, 5), 'best points'));
        this.draw();
        this.parts.parallel.replaceChildren(sweepParallel(this.table, this.shown, (row) => this.pick(row)));
        this.parts.rows.replaceChildren(this.rowTable(this.shown, 'points'));
    }
}

const sweepData = JSON.parse(byId('orrery-data').textContent ?? '{}');
new SweepPage(new SweepTable(sweepData)).show();
document.documentElement.dataset.page = 'ready';
