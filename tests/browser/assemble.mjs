// SPDX-License-Identifier: Apache-2.0
// assemble.mjs - a report file from the sources of the page and a document, the way tools/embed.c and the C side do it.
//
// The tests need documents that no run of the program gives (hostile names, a million spans, nothing known at all), so
// the page is put together here for them.  A test on a file of the program itself guards against a difference.

import {readFileSync} from 'node:fs';
import {join} from 'node:path';

/** Modules in the order of web/meson.build. @param {string} web @returns {string[]} */
function moduleNames(web) {
    const list = /web_scripts = files\(([^)]*)\)/.exec(readFileSync(join(web, 'meson.build'), 'utf8'));
    if (!list) throw new Error('web/meson.build has no list web_scripts');
    return [...list[1].matchAll(/'([^']+)'/g)].map((match) => match[1]);
}

/** Without imports, the word export, indentation, and comments on lines of their own. @param {string} text */
function plainScript(text) {
    const out = [];
    let isComment = false;
    for (const line of text.split('\n')) {
        const trimmed = line.trim();
        if (!isComment && /^\/\*\*/.test(trimmed)) isComment = !/\*\/./.test(trimmed);
        if (isComment) {
            if (trimmed.endsWith('*/')) isComment = false;
            continue;
        }
        if (trimmed.startsWith('//') || /^import[ {]/.test(line)) continue;
        out.push(line.replace(/^export (default )?|^\s+/, ''));
    }
    return out.join('\n');
}

/** @param {string} web  the folder @param {string[]} [names]  all of them, when not said */
export function joinModules(web, names = moduleNames(web)) {
    return names.map((name) => plainScript(readFileSync(join(web, name), 'utf8'))).join('\n');
}

/** @param {string} web  the folder
 *  @param {{doc: object, events: {id: string, base64: string}[]}} report @returns {string} */
export function assemble(web, report) {
    const script = joinModules(web);
    const json = JSON.stringify(report.doc).replaceAll('<', '\\u003c');
    const data = [`<script type="application/json" id="orrery-data">${json}</script>`,
        ...report.events.map(({id, base64}) => `<script type="text/plain" id="${id}">${base64}</script>`)].join('\n');
    const parts = {
        'title': 'Report',
        'css': `<style>\n${readFileSync(join(web, 'report.css'), 'utf8')}</style>`,
        'data': data,
        'script': `<script type="module">\n${script}\n</script>`,
    };
    let page = readFileSync(join(web, 'report.html'), 'utf8');
    for (const [name, text] of Object.entries(parts)) page = page.replace(`<!--orrery:${name}-->`, () => text);
    return page;
}
