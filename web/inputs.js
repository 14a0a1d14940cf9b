// SPDX-License-Identifier: Apache-2.0
// inputs.js - where the figures come from: files with their hashes, options, version, command line.

import {el} from './dom.js';
import {listOf, panel} from './panel.js';
import {sortableTable} from './table.js';
import {countText, isKnown, sizeText} from './units.js';
/** @import {Column} from './table.js' */
/** @import {InputFile, ReportDocument, Run} from './types.js' */

/** @type {Column<InputFile>} */
const sizeColumn = {title: 'Size', isNumber: true, key: (row) => row.bytes, show: (row) => sizeText(row.bytes), exact: (row) => `${countText(row.bytes)} B`};

/** @param {ReportDocument} doc @param {Run} run */
export function inputsPanel(doc, run) {
    const inputs = listOf(run.inputs);
    const options = listOf(run.options);
    const notes = listOf(run.notes);
    return panel('inputs', 'Inputs and options', 'Everything needed to make this report again.',
        el('dl', {class: 'facts'},
            el('div', {}, el('dt', {}, 'program'), el('dd', {}, doc.program ?? 'not said')),
            el('div', {}, el('dt', {}, 'run'), el('dd', {}, `${run.name}${run.kind ? `, ${run.kind}` : ''}`))),
        doc.made_from ? commandLine(doc.made_from) : null,
        notes.length > 0 ? el('div', {class: 'notes'}, el('h3', {}, 'Notes'), el('ul', {}, ...notes.map((note) => el('li', {}, note)))) : null,
        inputs.length > 0 ? sortableTable('Input files', [
            {title: 'What', key: (row) => row.what, show: (row) => row.what},
            {title: 'File', key: (row) => row.path, show: (row) => el('code', {}, row.path ?? '')},
            ...(inputs.some((row) => isKnown(row.bytes)) ? [sizeColumn] : []),
            {title: 'Hash', show: (row) => el('code', {class: 'hash'}, row.hash ?? '')},
        ], inputs) : null,
        options.length > 0 ? sortableTable('Options', [
            {title: 'Option', key: (row) => row.name, show: (row) => el('code', {}, row.name)},
            {title: 'Value', key: (row) => row.value, show: (row) => el('code', {}, row.value)},
        ], options) : null);
}

/** @param {string} text */
function commandLine(text) {
    const button = el('button', {type: 'button', class: 'no-print', onclick: async () => {
        try {
            await navigator.clipboard.writeText(text);
            button.textContent = 'Copied';
        } catch {
            button.textContent = 'Please copy it manually';
        }
    }}, 'Copy');
    return el('div', {class: 'command'}, el('code', {}, text), button);
}
