// SPDX-License-Identifier: Apache-2.0
// sweep_data.js - the table of a sweep: columns, rows, and the rows that pass the filters.

/** @import {SweepDocument, SweepValue} from './types.js' */

/** One point, with its values by column. @typedef {{point: number, error: string | null, values: SweepValue[]}} SweepRow */

/** What a filter accepts: some values, or a range. @typedef {{values: Set<string> | null, from: number, to: number}} SweepFilter */

/** A value as text; numbers are shortened. @param {SweepValue} value */
export function sweepText(value) {
    if (value === null || value === undefined) return '\u2013';
    if (typeof value !== 'number') return String(value);
    if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');
    return String(Number(value.toPrecision(5)));
}

export class SweepTable {
    /** @param {SweepDocument} document */
    constructor(document) {
        this.title = document.title || 'Sweep';
        this.goal = document.goal;
        this.counts = {points: document.points, failed: document.failed, open: document.not_computed};
        this.commands = document.commands;
        this.columns = document.columns;
        /** @type {SweepRow[]} */
        this.all = document.rows.map((row) => ({point: row.point, error: row.error ?? null, values: row.values}));
        this.rows = this.all.filter((row) => row.error === null);
        this.failures = this.all.filter((row) => row.error !== null);
        /** @type {Map<number, SweepFilter>} */
        this.filters = new Map();
    }

    /** The place of a column; -1: none. @param {string} name */
    place(name) {
        return this.columns.findIndex((column) => column.name === name);
    }

    /** @param {number} column */
    isNumber(column) {
        return this.rows.some((row) => typeof row.values[column] === 'number')
            && this.rows.every((row) => typeof row.values[column] === 'number' || row.values[column] === null);
    }

    /** Distinct values, numbers in ascending order. @param {number} column */
    distinct(column) {
        const seen = new Map(this.rows.map((row) => [String(row.values[column]), row.values[column]]));
        const list = [...seen.values()];
        return this.isNumber(column) ? list.sort((a, b) => Number(a) - Number(b)) : list;
    }

    /** @param {number} column */
    range(column) {
        let from = Infinity;
        let to = -Infinity;
        for (const row of this.rows) {
            const value = row.values[column];
            if (typeof value !== 'number') continue;
            from = Math.min(from, value);
            to = Math.max(to, value);
        }
        return {from, to};
    }

    /** Rows that pass every filter. */
    shown() {
        return this.rows.filter((row) => [...this.filters].every(([column, filter]) => {
            const value = row.values[column];
            if (filter.values) return filter.values.has(String(value));
            return typeof value === 'number' && value >= filter.from && value <= filter.to;
        }));
    }

    /** The column and direction of the goal; the first figure if there is no goal or it is an expression. */
    goalColumn() {
        const match = /^(min|max) (.*)$/.exec(this.goal ?? '');
        const named = match ? this.place(match[2].trim()) : -1;
        const measured = this.columns.findIndex((column, k) => column.kind !== 'axis' && this.isNumber(k));
        return {column: named >= 0 ? named : Math.max(measured, 0), sign: match?.[1] === 'max' ? -1 : 1, isGoal: named >= 0};
    }

    /** Best first. @param {SweepRow[]} rows */
    ordered(rows) {
        const {column, sign} = this.goalColumn();
        return [...rows].sort((a, b) => sign * (Number(a.values[column]) - Number(b.values[column])) || a.point - b.point);
    }
}
