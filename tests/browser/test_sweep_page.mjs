// SPDX-License-Identifier: Apache-2.0
// test_sweep_page.mjs - the page of `orrery sweep report` in a real browser: it draws, filters, and names stay text.

import {spawnSync} from 'node:child_process';
import {mkdtempSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {launchBrowser, openPage, scratch} from './chromium.mjs';
import {check, checkEqual, runAll, test} from './tap.mjs';

const browser = await launchBrowser();
const folder = mkdtempSync(join(scratch(), 'sweep-'));

/** @param {string[]} words */
function orrery(words) {
    const run = spawnSync('orrery', words, {cwd: folder, encoding: 'utf8', timeout: 90000});
    checkEqual(run.status, 0, `orrery ${words.join(' ')}: ${run.stderr}${run.error ?? ''}`);
}

/** @param {string} spec @param {(page: any) => Promise<void>} work @param {object} [options] */
async function onSweep(spec, work, options) {
    writeFileSync(join(folder, 's.yaml'), spec);
    orrery(['-q', 'sweep', 's.yaml', '-o', 's.db', '-j', '2']);
    orrery(['sweep', 'report', 's.db', '-o', 's.html']);
    const {page, complaints, close} = await openPage(browser, pathToFileURL(join(folder, 's.html')).href, options);
    try {
        await work(page);
        const text = await page.locator('body').innerText();
        check(!/\b(NaN|undefined|Infinity|\[object)\b/.test(text), 'a value was not made a text');
        checkEqual(complaints, [], 'complaints of the page');
    } finally {
        await close();
        spawnSync('sh', ['-c', 'rm -f s.db*'], {cwd: folder});
    }
}

const GRID = `title: "kernels <script>alert(1)</script>"
command: chip time
arguments: ["{chip}", "gemm {type} m={m} n=1024 k=1024"]
variables: {chip: [a100, h100, no-such-chip], type: [bf16, fp16], m: [256, 512, 1024, 4096]}
measures: {m_squared: m * m}
goal: max m_squared
`;

test('points, plots and failures are there, and names stay text', () => onSweep(GRID, async (page) => {
    checkEqual(await page.title(), 'kernels <script>alert(1)</script>');
    checkEqual(await page.$$eval('main > section', (/** @type {Element[]} */ list) => list.map((part) => part.id)),
        ['result', 'filters', 'plot', 'parallel', 'points', 'failures']);
    checkEqual(await page.locator('#plot circle').count(), 16);
    checkEqual(await page.locator('#parallel polyline').count(), 16);
    checkEqual(await page.locator('#failures tbody tr').count(), 8);
    check((await page.locator('#result tbody tr').first().innerText()).includes('4\u202f096'), 'the best point is not first');
}));

test('filters narrow plot and table, and say how many are left', () => onSweep(GRID, async (page) => {
    await page.locator('#filters .sweep-filter', {hasText: 'chip'}).getByLabel('a100').uncheck();
    checkEqual(await page.locator('#plot circle').count(), 8);
    checkEqual(await page.locator('#points tbody tr').count(), 8);
    check((await page.locator('#filters [role=status]').innerText()).startsWith('8 of'), 'the count is wrong');
    await page.locator('#plot').getByLabel('log x').check();
    checkEqual(await page.locator('#plot circle').count(), 8);
    await page.locator('#plot circle').last().click();
    check((await page.locator('#plot h3').innerText()).startsWith('Point'), 'a click shows no figures');
}));

test('a narrow window and dark colours', () => onSweep(GRID, async (page) => {
    await page.setViewportSize({width: 800, height: 900});
    check(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'the page is wider than the window');
    await page.locator('#theme').click();
}));

await runAll(() => browser.close());
