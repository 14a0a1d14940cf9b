// SPDX-License-Identifier: Apache-2.0
// test_plan_page.mjs - the page of `orrery plan --report` in a real browser: it draws, sorts, and names stay text.

import {spawnSync} from 'node:child_process';
import {mkdtempSync, readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {launchBrowser, openPage, scratch} from './chromium.mjs';
import {check, checkEqual, runAll, test} from './tap.mjs';

const browser = await launchBrowser();
const folder = mkdtempSync(join(scratch(), 'plan-'));
const SMALL = ['--machine', 'dgx-h100:1', '--seq', '512', '--batch', '16'];

/** @param {string[]} words */
function orrery(words) {
    const run = spawnSync('orrery', words, {cwd: folder, encoding: 'utf8', timeout: 90000});
    checkEqual(run.status, 0, `orrery ${words.join(' ')}: ${run.stderr}${run.error ?? ''}`);
}

/** @param {string[]} words @param {(page: any) => Promise<void>} work */
async function onPlan(words, work) {
    orrery(['-q', 'plan', ...words, '--report', 'p.html']);
    const {page, complaints, close} = await openPage(browser, pathToFileURL(join(folder, 'p.html')).href);
    try {
        await work(page);
        const text = await page.locator('body').innerText();
        check(!/\b(NaN|undefined|Infinity|\[object)\b/.test(text), 'a value was not made a text');
        checkEqual(complaints, [], 'complaints of the page');
    } finally {
        await close();
    }
}

/** @param {any} page */
async function sections(page) {
    return page.$$eval('main > section', (/** @type {Element[]} */ list) => list.map((part) => part.id));
}

test('all parts are there, and dots, lines and rows are the plans', () => onPlan(
    ['gpt2', ...SMALL, '--fix', 'tp=2,cp=1,recompute=none', '--price', '2'], async (page) => {
        checkEqual(await sections(page), ['best', 'rates', 'pareto', 'axes', 'why', 'plans']);
        const data = JSON.parse(await page.locator('#orrery-data').textContent());
        checkEqual(await page.locator('#pareto circle').count(), data.plans.length);
        checkEqual(await page.locator('#axes path.thread').count(), data.plans.length);
        checkEqual(await page.locator('#plans tbody tr').count(), data.plans.length);
        checkEqual(await page.locator('#why tbody tr').count(), Math.min(10, data.plans.length - 1));
        checkEqual(await page.locator('#pareto circle.best').count(), 1);
        check((await page.locator('#best').innerText()).includes('per million tokens'), 'the price is missing');
    }));

test('axes can be chosen, columns sorted, values picked', () => onPlan(
    ['gpt2', ...SMALL, '--fix', 'tp=2,cp=1,recompute=none'], async (page) => {
        const data = JSON.parse(await page.locator('#orrery-data').textContent());
        await page.locator('#pareto').getByLabel('vertical').selectOption('MFU');
        checkEqual(await page.locator('#pareto circle').count(), data.plans.length);
        await page.locator('#plans').getByRole('button', {name: 'memory'}).click();
        const least = Math.min(...data.plans.map((/** @type {any} */ p) => p.memory_bytes)) / 2 ** 30;
        checkEqual(await page.locator('#plans tbody tr').first().locator('td').nth(4).innerText(), `${least.toFixed(1)} GiB`);
        const schedule = (/** @type {any} */ p) => p.pp > 1 ? p.pipeline : 'none';
        await page.locator('#axes text', {hasText: new RegExp(`^${schedule(data.plans[0])}$`)}).first().click();
        const others = data.plans.filter((/** @type {any} */ p) => schedule(p) !== schedule(data.plans[0])).length;
        check(others > 0, 'all plans have one schedule: the test tells nothing');
        checkEqual(await page.locator('#axes path.dim').count(), others);
    }));

test('numbers of devices and checks have their sections; the best plan has its report', () => onPlan(
    ['gpt2', '--machine', 'dgx-h100:2', '--seq', '512', '--batch', '16', '--devices', '8,16', '--fix', 'tp=2,cp=1,pp=1,recompute=none',
        '--check', '--check-budget', '2s'], async (page) => {
        checkEqual(await sections(page), ['best', 'rates', 'pareto', 'axes', 'why', 'sizes', 'checks', 'plans']);
        const data = JSON.parse(await page.locator('#orrery-data').textContent());
        const all = data.plans.length + data.other_sizes[0].plans.length;
        checkEqual(await page.locator('#pareto circle').count(), all);
        await page.locator('#pareto').getByLabel('vertical').selectOption('devices');
        checkEqual(await page.locator('#checks tbody tr').count(), 12);
        check((await page.locator('#checks').innerText()).includes('whole step'), 'what was run is missing');
        check(readFileSync(join(folder, 'p.best.html'), 'utf8').includes('orrery-data'), 'the report of the best plan is empty');
        await page.setViewportSize({width: 800, height: 900});
        check(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'the page is wider than the window');
    }));

const SERVE = ['--machine', 'dgx-h100:1', '--serve', '--requests', '64', '--prompt', '256', '--output', '16'];

test('serving: dots, lines and rows are the plans, and no plan beats those worth choosing from', () => onPlan(
    ['llama-3-8b', ...SERVE, '--price', '2'], async (page) => {
        checkEqual(await sections(page), ['best', 'pareto', 'front', 'axes', 'why', 'plans']);
        const data = JSON.parse(await page.locator('#orrery-data').textContent());
        checkEqual(await page.locator('#pareto circle').count(), data.plans.length);
        checkEqual(await page.locator('#axes path.thread').count(), data.plans.length);
        checkEqual(await page.locator('#plans tbody tr').count(), data.plans.length);
        const front = data.plans.filter((/** @type {any} */ p) => !data.plans.some((/** @type {any} */ q) =>
            q.tokens_per_s > p.tokens_per_s && q.ttft_s < p.ttft_s && q.tpot_s < p.tpot_s)).length;
        const rows = await page.locator('#front tbody tr').count();
        check(rows > 1 && rows <= front, `${rows} plans are worth choosing from, ${front} are not beaten in all three figures`);
        check((await page.locator('#best').innerText()).includes('orrery serve llama-3-8b'), 'the command is missing');
        await page.locator('#pareto').getByLabel('horizontal').selectOption('cost per million tokens');
        await page.locator('#plans').getByRole('button', {name: 'TTFT'}).click();
        const least = Math.min(...data.plans.map((/** @type {any} */ p) => p.ttft_s)) * 1e3;
        checkEqual(await page.locator('#plans tbody tr').first().locator('td').nth(2).innerText(), `${least.toPrecision(3)} ms`);
        await page.locator('#axes text', {hasText: /^8$/}).first().click();
        const others = data.plans.filter((/** @type {any} */ p) => p.tp !== 8).length;
        check(others > 0, 'all plans have one tp: the test tells nothing');
        checkEqual(await page.locator('#axes path.dim').count(), others);
        await page.setViewportSize({width: 800, height: 900});
        check(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'the page is wider than the window');
    }));

test('serving: limits are said', () => onPlan(['llama-3-8b', ...SERVE, '--max-tpot', '4ms'], async (page) => {
    check((await page.locator('main').innerText()).includes('the next within 4.00 ms'), 'the limit is missing');
}));

const CONFIG = {architectures: ['GPT2LMHeadModel'], model_type: 'gpt2', n_layer: 4, n_embd: 256, n_head: 4, n_positions: 512, vocab_size: 1000};

test('a model file with markup in its name stays text', async () => {
    const name = '<img src=x onerror=alert(1)>.json';
    writeFileSync(join(folder, name), JSON.stringify(CONFIG));
    await onPlan([name, ...SMALL, '--fix', 'tp=1,pp=1,cp=1,recompute=none'], async (page) => {
        checkEqual(await page.locator('img').count(), 0);
        check((await page.title()).startsWith('<img src=x'), 'the name is not the title');
    });
});

await runAll(() => browser.close());
