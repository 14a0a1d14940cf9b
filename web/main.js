// SPDX-License-Identifier: Apache-2.0
// main.js - assembles the page: reads the document, makes the panels of the selected run, and handles keys.

import {byId, el, isTextField} from './dom.js';
import {readAddress, writeAddress} from './address.js';
import {breakdownPanel} from './breakdown.js';
import {collectivesPanel} from './collectives.js';
import {comparisonPanel} from './comparison.js';
import {criticalPanel} from './critical.js';
import {linksPanel, pausesPanel, queuesPanel} from './fabric.js';
import {flowsPanel} from './flow_times.js';
import {headlinePanel} from './headline.js';
import {helpDialog} from './help.js';
import {inputsPanel} from './inputs.js';
import {memoryPanel} from './memory.js';
import {listOf} from './panel.js';
import {pipelinePanel} from './pipeline.js';
import {stallPanel} from './stall.js';
import {themeButton} from './theme.js';
import {missingTimeline, TimelinePanel} from './timeline_panel.js';
import {topologyPanel} from './topology.js';
import {whatIfPanel} from './whatif.js';
/** @import {PathStep, ReportDocument} from './types.js' */

/** @returns {ReportDocument} */
function readDocument() {
    const doc = JSON.parse(byId('orrery-data').textContent ?? '');
    if (doc.format !== 1) throw new Error(`the format of the figures is ${doc.format}; this page reads format 1`);
    if (!Array.isArray(doc.runs) || doc.runs.length === 0) throw new Error('the report has no runs');
    return doc;
}

class Page {
    /** @param {ReportDocument} doc */
    constructor(doc) {
        this.doc = doc;
        this.run = 0;
        /** @type {Map<number, TimelinePanel>} one per run, so that returning to a run is free */
        this.timelines = new Map();
        this.help = helpDialog();
        document.body.append(this.help);
        document.title = doc.title || doc.runs[0].name || 'Orrery report';
        this.showTop();
        this.showRun(this.runOfAddress());
        document.addEventListener('keydown', (event) => this.key(event));
        window.addEventListener('hashchange', () => this.goToAddress());
        window.addEventListener('scroll', () => this.markNav(), {passive: true});
        this.goToAddress();
    }

    runOfAddress() {
        const {run} = readAddress(location.hash);
        return run >= 0 && run < this.doc.runs.length ? run : 0;
    }

    /** Show what the address asks for, as far as it exists. */
    goToAddress() {
        const address = readAddress(location.hash);
        if (location.hash.includes('run=') && this.runOfAddress() !== this.run) this.showRun(this.runOfAddress());
        this.timelineOf(this.run)?.goTo(address);
        if (location.hash.includes('&')) document.getElementById(address.part)?.scrollIntoView();
    }

    showTop() {
        const {doc} = this;
        byId('top').append(
            el('div', {class: 'brand'}, el('span', {class: 'mark', 'aria-hidden': 'true'}), 'Orrery'),
            el('h1', {}, document.title),
            el('div', {class: 'top-tools'},
                themeButton(() => this.recolour()),
                el('button', {type: 'button', id: 'help-button', class: 'quiet no-print', title: 'Keys and mouse (?)', onclick: () => this.help.showModal()}, '? help')));
        byId('foot').append(`Made by ${doc.program ?? 'Orrery'}. Self-contained; makes no network requests.`);
    }

    /** @param {number} number */
    showRun(number) {
        this.run = number;
        const run = this.doc.runs[number];
        const timeline = this.timelineOf(number);
        const jump = timeline ? (/** @type {PathStep} */ step) => timeline.jumpTo(step) : null;
        const top = [comparisonPanel(this.doc), this.doc.runs.length > 1 ? this.runTabs() : null, stallPanel(run), headlinePanel(run)];
        const ranks = [
            breakdownPanel(run), whatIfPanel(run), timeline ? timeline.element : missingTimeline(run), criticalPanel(run, jump), timeline ? timeline.operators : null, collectivesPanel(run),
        ];
        const fabric = [linksPanel(run), queuesPanel(run), pausesPanel(run), flowsPanel(run), topologyPanel(run)];
        /* Runs of flows have no ranks: nothing is missing. */
        const parts = (run.kind === 'flows' ? [...top, ...fabric, inputsPanel(this.doc, run)]
            : [...top, ...ranks, ...fabric, memoryPanel(run), pipelinePanel(run), inputsPanel(this.doc, run)]).filter((part) => part !== null);
        /* Panels without data come last. */
        const known = parts.filter((part) => !part.hasAttribute('data-missing'));
        const missing = parts.filter((part) => part.hasAttribute('data-missing'));
        byId('content').replaceChildren(...known, ...(missing.length > 0 ? [el('div', {class: 'missing-parts'}, ...missing)] : []));
        this.showNav();
        document.documentElement.dataset.page = 'ready';
    }

    /** @param {number} number @returns {TimelinePanel | null} */
    timelineOf(number) {
        const run = this.doc.runs[number];
        if (!run.timeline) return null;
        let timeline = this.timelines.get(number);
        if (!timeline) {
            timeline = new TimelinePanel(run.timeline, listOf(run.critical_path?.steps), number);
            this.timelines.set(number, timeline);
            void timeline.start();
        }
        return timeline;
    }

    runTabs() {
        return el('div', {class: 'tabs', role: 'tablist', 'aria-label': 'Run shown below'}, ...this.doc.runs.map((run, k) => el('button', {
            type: 'button', role: 'tab', id: `tab-${k + 1}`, 'aria-selected': k === this.run ? 'true' : 'false', onclick: () => {
                this.showRun(k);
                writeAddress({part: 'headline', run: k, from: null, to: null, span: null});
                document.getElementById(`tab-${k + 1}`)?.focus();
            },
        }, run.name, el('span', {class: 'faint'}, k === 0 ? 'baseline' : run.kind ?? ''))));
    }

    parts() {
        return [...document.querySelectorAll('main > section[data-title]')];
    }

    showNav() {
        const links = this.parts().map((part) => el('a', {href: `#${part.id}`}, part.getAttribute('data-title')));
        byId('nav').replaceChildren(...links);
        this.markNav();
    }

    /** The panel in view. */
    markNav() {
        const parts = this.parts();
        const links = [...byId('nav').querySelectorAll('a')];
        const isAtEnd = window.scrollY > 0 && window.scrollY + window.innerHeight >= document.documentElement.scrollHeight - 2;
        const passed = parts.filter((part) => part.getBoundingClientRect().top < 140).length;
        const at = isAtEnd ? parts.length - 1 : Math.max(0, passed - 1);
        links.forEach((link, k) => {
            if (k === at) link.setAttribute('aria-current', 'true');
            else link.removeAttribute('aria-current');
        });
    }

    recolour() {
        for (const timeline of this.timelines.values()) timeline.recolour();
        document.querySelectorAll('canvas.matrix').forEach((canvas) => canvas.dispatchEvent(new Event('recolour')));
    }

    /** @param {1 | -1} step */
    goPart(step) {
        const parts = this.parts();
        const tops = parts.map((part) => part.getBoundingClientRect().top);
        const next = step === 1 ? tops.findIndex((top) => top > 90) : tops.findLastIndex((top) => top < 40);
        parts[next]?.scrollIntoView({block: 'start'});
    }

    /** @param {KeyboardEvent} event */
    key(event) {
        if (isTextField(event.target) || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
        if (event.key === '?') this.help.showModal();
        else if (event.key === '/') document.getElementById('timeline-search')?.focus();
        else if (event.key === 't') document.getElementById('theme')?.click();
        else if (event.key === 'j') this.goPart(1);
        else if (event.key === 'k') this.goPart(-1);
        else return;
        event.preventDefault();
    }
}

try {
    new Page(readDocument());
} catch (problem) {
    byId('content').append(el('p', {class: 'problem'}, `This report cannot be shown: ${problem instanceof Error ? problem.message : problem}.`));
    throw problem;
}
