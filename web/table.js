// SPDX-License-Identifier: Apache-2.0
// table.js - tables: sorted by a click (or Enter) on a heading, numbers aligned right, long tables shown in parts.

import {el} from './dom.js';
import {countText} from './units.js';
/** @import {Child} from './dom.js' */

const ROWS_FIRST = 50;
const ROWS_MORE = 500;

/**
 * @template T
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: T) => Child} show
 * @property {((row: T) => number | string | null | undefined)} [key]   sort key; none: not sortable
 * @property {boolean} [isNumber]
 * @property {string} [meaning]     the meaning of the term
 * @property {(row: T) => string} [exact]   shown on hover
 */

/** Unknown values come last in either direction. @param {any} a @param {any} b @param {number} sign */
function compareKeys(a, b, sign) {
    const isAbsent = [a, b].map((value) => value === null || value === undefined || Number.isNaN(value));
    if (isAbsent[0] || isAbsent[1]) return Number(isAbsent[0]) - Number(isAbsent[1]);
    if (typeof a === 'string' || typeof b === 'string') return sign * String(a).localeCompare(String(b), 'en', {numeric: true});
    return sign * (a - b);
}

/** @template T @param {string} caption @param {Column<T>[]} columns @param {T[]} rows
 *  @param {{onRow?: (row: T) => void, first?: number}} [options] */
export function sortableTable(caption, columns, rows, options = {}) {
    const body = el('tbody');
    const more = el('div', {class: 'table-more no-print'});
    let sorted = rows;
    let shown = options.first ?? ROWS_FIRST;
    const fill = () => {
        body.replaceChildren(...sorted.slice(0, shown).map((row) => tableRow(columns, row, options.onRow)));
        const left = sorted.length - shown;
        more.replaceChildren(left > 0 ? el('button', {type: 'button', onclick: () => {
            shown += ROWS_MORE;
            fill();
        }}, `Show ${countText(Math.min(left, ROWS_MORE))} more of ${countText(sorted.length)}`) : '');
    };
    /** @type {HTMLTableCellElement[]} */
    const heads = columns.map((column) => headCell(column, (sign) => {
        sorted = [...rows].sort((a, b) => compareKeys(column.key?.(a), column.key?.(b), sign));
        heads.forEach((head) => head.removeAttribute('aria-sort'));
        heads[columns.indexOf(column)].setAttribute('aria-sort', sign > 0 ? 'ascending' : 'descending');
        fill();
    }));
    fill();
    return el('div', {class: 'table-place'},
        el('div', {class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': caption},
            el('table', {}, el('caption', {class: 'unseen'}, caption), el('thead', {}, el('tr', {}, ...heads)), body)),
        more);
}

/** @template T @param {Column<T>} column @param {(sign: 1 | -1) => void} sort */
function headCell(column, sort) {
    const head = el('th', {scope: 'col', class: column.isNumber ? 'number' : null, title: column.meaning ?? null});
    if (!column.key) {
        head.append(column.title);
        return head;
    }
    head.append(el('button', {type: 'button', class: 'sort', onclick: () => {
        const now = head.getAttribute('aria-sort');
        const first = column.isNumber ? -1 : 1;
        sort(now === null ? first : now === 'ascending' ? -1 : 1);
    }}, column.title));
    return head;
}

/** @template T @param {Column<T>[]} columns @param {T} row @param {((row: T) => void) | undefined} onRow */
function tableRow(columns, row, onRow) {
    return el('tr', {class: onRow ? 'clickable' : null, onclick: onRow ? () => onRow(row) : null},
        ...columns.map((column) => el('td', {class: column.isNumber ? 'number' : null, title: column.exact?.(row) ?? null}, column.show(row))));
}
