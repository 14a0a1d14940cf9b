// SPDX-License-Identifier: Apache-2.0
// search.js - find spans by name: which texts match (* matches anything), and which match is next in time.
//
// There are few texts and many spans: a search scans the texts, and a step to the next match is one pass over the
// spans.  No list of results is kept, so a search that matches every span costs no more.

/** @import {Timeline} from './columns.js' */
/** @import {Search} from './view.js' */

/** @param {Timeline} timeline @param {string} text @returns {Search | null} */
export function searchFor(timeline, text) {
    const wanted = text.trim();
    if (wanted === '') return null;
    const pattern = new RegExp(wanted.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('.*'), 'i');
    const isMatch = Uint8Array.from(timeline.meta.texts, (one) => (pattern.test(one) ? 1 : 0));
    let count = 0;
    for (let k = 0; k < timeline.count; k++) count += isMatch[timeline.name[k]];
    return {text, isMatch, count};
}

/** Whether a comes before b: by start, then by number. @param {Timeline} timeline
 *  @param {number} a @param {number} b */
function comesBefore(timeline, a, b) {
    return timeline.start[a] !== timeline.start[b] ? timeline.start[a] < timeline.start[b] : a < b;
}

/** The match after (or before) a span, wrapping around at the end.
 *  @param {Timeline} timeline @param {Search} search
 *  @param {number} current  or -1 @param {1 | -1} step @returns {number} */
export function nextMatch(timeline, search, current, step) {
    /** @param {number} a @param {number} b */
    const isAhead = (a, b) => (step === 1 ? comesBefore(timeline, a, b) : comesBefore(timeline, b, a));
    let next = -1;
    let first = -1;
    for (let k = 0; k < timeline.count; k++) {
        if (!search.isMatch[timeline.name[k]] || k === current) continue;
        if (first < 0 || isAhead(k, first)) first = k;
        if (current >= 0 && isAhead(current, k) && (next < 0 || isAhead(k, next))) next = k;
    }
    return next >= 0 ? next : first >= 0 ? first : search.count > 0 ? current : -1;
}

/** The index of a match in order of time, from 1; 0: not a match. @param {Timeline} timeline
 *  @param {Search} search @param {number} span */
export function matchNumber(timeline, search, span) {
    if (span < 0 || !search.isMatch[timeline.name[span]]) return 0;
    let number = 1;
    for (let k = 0; k < timeline.count; k++) {
        if (search.isMatch[timeline.name[k]] && comesBefore(timeline, k, span)) number++;
    }
    return number;
}
