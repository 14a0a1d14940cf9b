// SPDX-License-Identifier: Apache-2.0
// address.js - every view can be linked to: the address has the panel, the run, the time range and the span.
//
//     report.html#timeline&run=2&from=1200&to=3400&span=17       times in ns from the start of the timeline

/** @typedef {{part: string, run: number, from: number | null, to: number | null, span: number | null}} Address */

/** @param {string} hash @returns {Address} */
export function readAddress(hash) {
    const [part, ...rest] = hash.replace(/^#/, '').split('&');
    const values = new URLSearchParams(rest.join('&'));
    /** @param {string} name */
    const numberOf = (name) => {
        const text = values.get(name);
        const value = Number(text);
        return text !== null && text !== '' && Number.isFinite(value) ? value : null;
    };
    return {part, run: (numberOf('run') ?? 1) - 1, from: numberOf('from'), to: numberOf('to'), span: numberOf('span')};
}

/** @param {Address} address */
export function addressText({part, run, from, to, span}) {
    const texts = [part];
    if (run > 0) texts.push(`run=${run + 1}`);
    if (from !== null && to !== null) texts.push(`from=${Number(from.toPrecision(12))}`, `to=${Number(to.toPrecision(12))}`);
    if (span !== null) texts.push(`span=${span}`);
    return `#${texts.join('&')}`;
}

let waiting = 0;

/** Browsers refuse frequent changes of the address: wait until the view has settled. @param {Address} address */
export function writeAddress(address) {
    clearTimeout(waiting);
    waiting = setTimeout(() => history.replaceState(null, '', addressText(address)), 400);
}
