// SPDX-License-Identifier: Apache-2.0
// units.js - numbers for people: always with a unit, few digits, digits of equal width.
//
// Simulated times are sometimes needed exactly, so every short text has a long one for tooltips.

/** @import {Maybe} from './types.js' */

/** Shown for unknown values. */
export const UNKNOWN = '\u2013';

const TIME_UNITS = /** @type {[number, string][]} */ ([[1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s'], [1, 'ns']]);
const SIZE_UNITS = /** @type {[number, string][]} */ ([
    [2 ** 50, 'PiB'], [2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B'],
]);
const RATE_UNITS = /** @type {[number, string][]} */ ([
    [1e15, 'PB/s'], [1e12, 'TB/s'], [1e9, 'GB/s'], [1e6, 'MB/s'], [1e3, 'kB/s'], [1, 'B/s'],
]);
const COUNT_UNITS = /** @type {[number, string][]} */ ([[1e12, ' T'], [1e9, ' G'], [1e6, ' M'], [1e3, ' k'], [1, '']]);

/** @param {Maybe} value @returns {value is number} */
export function isKnown(value) {
    return typeof value === 'number' && Number.isFinite(value);
}

/** Three significant digits, four below ten thousand: 1.23, 12.3, 123, 1234. @param {number} value */
function shortNumber(value) {
    const size = Math.abs(value);
    const digits = size >= 100 ? (size < 1000 && value !== Math.round(value) ? 1 : 0) : size >= 10 ? 2 : 3;
    const text = value.toFixed(size === 0 ? 0 : digits);
    return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** @param {number} value @param {[number, string][]} units */
function inUnits(value, units) {
    const size = Math.abs(value);
    /* 999.96 of one unit would print as 1000, so switch to the next unit slightly early. */
    const [scale, unit] = units.find(([limit]) => size >= limit * 0.99995) ?? units[units.length - 1];
    return `${shortNumber(value / scale)}\u00a0${unit}`;
}

/** @param {Maybe} ns */
export function timeText(ns) {
    if (!isKnown(ns)) return UNKNOWN;
    if (ns === 0) return '0\u00a0ns';
    return inUnits(ns, TIME_UNITS);
}

/** A time on an axis: with as many digits as a step of this size needs. @param {number} ns @param {number} step */
export function timeAt(ns, step) {
    const [scale, unit] = TIME_UNITS.find(([limit]) => Math.abs(ns) >= limit) ?? TIME_UNITS[TIME_UNITS.length - 1];
    const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(Math.max(step, 1e-3) / scale))));
    return `${(ns / scale).toFixed(digits)}\u00a0${unit}`;
}

/** All digits: 1,234,567 ns. @param {Maybe} ns */
export function timeExact(ns) {
    return isKnown(ns) ? `${groupDigits(ns)}\u00a0ns` : UNKNOWN;
}

/** @param {Maybe} bytes */
export function sizeText(bytes) {
    return isKnown(bytes) ? inUnits(bytes, SIZE_UNITS) : UNKNOWN;
}

/** @param {Maybe} rate */
export function rateText(rate) {
    return isKnown(rate) ? inUnits(rate, RATE_UNITS) : UNKNOWN;
}

/** @param {Maybe} share */
export function shareText(share) {
    if (!isKnown(share)) return UNKNOWN;
    const percent = share * 100;
    const size = Math.abs(percent);
    if (size !== 0 && size < 0.01) return '\u2248\u00a00\u00a0%';
    return `${percent.toFixed(size >= 99.95 || percent === 0 ? 0 : size >= 1 ? 1 : 2).replace('-', '\u2212')}\u00a0%`;
}

/** With its sign: +1.2 %, −3.4 %. @param {Maybe} share */
export function changeText(share) {
    if (!isKnown(share)) return UNKNOWN;
    return share > 0 ? `+${shareText(share)}` : shareText(share);
}

/** 12,345 @param {Maybe} value */
export function countText(value) {
    return isKnown(value) ? groupDigits(value) : UNKNOWN;
}

/** 12.3 M, where a full number is too long. @param {Maybe} value */
export function roughText(value) {
    if (!isKnown(value)) return UNKNOWN;
    return Math.abs(value) < 100000 ? groupDigits(value) : inUnits(value, COUNT_UNITS).replace(/\u00a0 ?/, '\u00a0');
}

/** A value of a counter, in the unit from the file. @param {number} value @param {string} unit */
export function counterText(value, unit) {
    if (/^(b|bytes?)$/i.test(unit)) return sizeText(value);
    if (/^(ns|nanoseconds?)$/i.test(unit)) return timeText(value);
    if (/^(b\/s|bytes?\/s|bytes per second)$/i.test(unit)) return rateText(value);
    return unit === '' ? roughText(value) : `${roughText(value)}\u00a0${unit}`;
}

/** @param {number} value */
function groupDigits(value) {
    const [whole, part] = (Number.isInteger(value) ? String(value) : value.toFixed(3).replace(/\.?0+$/, '')).split('.');
    const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
    return part ? `${grouped}.${part}` : grouped;
}

/** "1 rank", "2 ranks" @param {Maybe} count @param {string} noun */
export function countOf(count, noun) {
    return `${countText(count)}\u00a0${noun}${count === 1 ? '' : 's'}`;
}

/** Labels of an axis of times: steps of 1, 2 or 5, in the unit of the largest, with as many digits as the step needs.
 *  @param {number} from @param {number} to @param {number} most  nanoseconds, and how many labels fit
 *  @returns {{at: number, text: string}[]} */
export function timeTicks(from, to, most) {
    const step = niceStep((to - from) / Math.max(1, most));
    const largest = Math.max(Math.abs(from), Math.abs(to));
    const [scale, unit] = TIME_UNITS.find(([limit]) => largest >= limit) ?? TIME_UNITS[TIME_UNITS.length - 1];
    const digits = Math.max(0, -Math.floor(Math.log10(step / scale) + 1e-9));
    const ticks = [];
    for (let k = Math.ceil(from / step); k * step <= to && ticks.length < 100; k++) {
        ticks.push({at: k * step, text: k === 0 ? '0' : `${(k * step / scale).toFixed(Math.min(digits, 12))}\u00a0${unit}`});
    }
    return ticks;
}

/** The next 1, 2 or 5 times a power of ten. @param {number} least */
export function niceStep(least) {
    if (!(least > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(least));
    const times = least / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}
