// SPDX-License-Identifier: Apache-2.0
// bench_page.mjs - the report page with a million spans: from opening the file to the first zoom, and frames of a zoom.
//
// Two rows in the format of bench/run: work per second of the page's main thread, best and median
// of 5 after a warm-up; the wall time of the first row is what a user waits.  Exits silently
// without a browser.

import {statSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {launchBrowser, openPage, samplePage, timelineDone} from '../tests/browser/chromium.mjs';

const RUNS = 5;
const FRAMES = 120;
const SPANS = 999936; /* of the sample: 64 ranks, two tracks each */

/** @typedef {{work: number, cpu: number, wall: number, peak: number}} Result */

/** @param {any} cdp */
async function metrics(cdp) {
    const list = (await cdp.send('Performance.getMetrics')).metrics;
    /** @param {string} name */
    const of = (name) => list.find((/** @type {{name: string}} */ one) => one.name === name).value;
    const heap = await cdp.send('Runtime.getHeapUsage');
    return {cpu: of('TaskDuration'), peak: (heap.usedSize + (heap.backingStorageSize ?? 0)) / 1e6};
}

/** @param {any} browser @param {string} address @returns {Promise<Result[]>} opening, drawing */
async function once(browser, address) {
    const start = performance.now();
    const {page, close} = await openPage(browser, address);
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('Performance.enable');
    await page.waitForFunction(() => document.documentElement.dataset.timeline !== undefined);
    await page.locator('canvas.timeline-canvas').press('w');
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0))));
    const wall = (performance.now() - start) / 1000;
    const opened = await metrics(cdp);
    await timelineDone(page);
    const before = await metrics(cdp);
    const drawStart = performance.now();
    await page.evaluate(async (/** @type {number} */ frames) => {
        for (let k = 0; k < frames; k++) {
            document.dispatchEvent(new KeyboardEvent('keydown', {key: k % 24 < 12 ? 'w' : 's'}));
            await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 0)));
        }
    }, FRAMES);
    const after = await metrics(cdp);
    const spans = await page.locator('#timeline .subtitle').innerText();
    if (!spans.startsWith('999,936')) throw new Error(`the page shows ${spans}`);
    await close();
    return [{work: SPANS, wall, ...opened},
        {work: FRAMES, wall: (performance.now() - drawStart) / 1000, cpu: after.cpu - before.cpu, peak: after.peak}];
}

/** @param {string} name @param {string} unit @param {Result[]} results @param {number} megabytes */
function row(name, unit, results, megabytes) {
    const sorted = [...results].sort((a, b) => a.cpu - b.cpu);
    const [best, median] = [sorted[0], sorted[Math.floor(sorted.length / 2)]];
    /** @param {Result} one */
    const rate = (one) => {
        const value = one.work / one.cpu;
        return value.toFixed(value < 100 ? 2 : value < 10000 ? 1 : 0).padStart(9);
    };
    const peak = Math.max(...results.map((one) => one.peak));
    console.log(`${name.padEnd(38)} ${rate(best)} ${rate(median)} ${unit.padEnd(8)} ${best.cpu.toFixed(3).padStart(7)} ${best.wall.toFixed(3).padStart(7)} ${peak.toFixed(1).padStart(8)} ${megabytes.toFixed(1).padStart(8)}`);
}

const browser = await launchBrowser();
const address = samplePage('million');
const results = [];
for (let k = 0; k <= RUNS; k++) results.push(await once(browser, address));
await browser.close();
const megabytes = statSync(fileURLToPath(address)).size / 1e6;
row('page__open_1m_spans', 'span/s', results.slice(1).map((one) => one[0]), megabytes);
row('page__zoom_1m_spans', 'frame/s', results.slice(1).map((one) => one[1]), megabytes);
