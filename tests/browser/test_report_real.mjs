// SPDX-License-Identifier: Apache-2.0
// test_report_real.mjs - report files that the program itself writes, opened in the browser: the two halves fit.

import {spawnSync} from 'node:child_process';
import {copyFileSync, mkdtempSync, readFileSync} from 'node:fs';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {launchBrowser, openPage, scratch, timelineDone} from './chromium.mjs';
import {check, checkEqual, checkNear, runAll, test} from './tap.mjs';

const browser = await launchBrowser();
const folder = mkdtempSync(join(scratch(), 'real-'));

/** @param {string[]} words @param {number} [status] */
function orrery(words, status = 0) {
    const run = spawnSync('orrery', words, {cwd: folder, encoding: 'utf8', timeout: 50000});
    checkEqual(run.status, status, `orrery ${words.join(' ')}: ${run.stderr}${run.error ?? ''}`);
    return run.stdout;
}

/** What the file holds. @param {string} name */
function documentOf(name) {
    const text = readFileSync(join(folder, name), 'utf8');
    const match = /<script type="application\/json" id="orrery-data">([^]*?)<\/script>/.exec(text);
    check(match !== null, `${name} holds no document`);
    return JSON.parse(/** @type {RegExpExecArray} */ (match)[1]);
}

/** @param {string} name @param {(page: any) => Promise<void>} work */
async function onReport(name, work) {
    const {page, complaints, close} = await openPage(browser, pathToFileURL(join(folder, name)).href);
    await timelineDone(page);
    await work(page);
    const text = await page.locator('body').innerText();
    check(!/\b(NaN|undefined|Infinity|\[object)\b/.test(text), 'a value was not made a text');
    checkEqual(complaints, [], 'complaints of the page');
    await close();
}

test('the report of a simulated training step opens, with every part that is known', async () => {
    orrery(['demo', '--ranks', '32', '-o', 'small', '-q']);
    const [set, system, network, memory] = ['step.orr', 'system.json', 'network.yml', 'memory.json'].map((name) => join('small', name));
    orrery(['run', set, '-s', system, '-t', network, '-m', memory, '--report', 'step.html']);
    const run = documentOf('step.html').runs[0];
    for (const row of run.breakdown) {
        checkNear(row.compute_ns + row.comm_exposed_ns + row.memory_ns + row.host_ns + row.idle_ns, row.total_ns, 1, `the parts of ${row.name}`);
    }
    await onReport('step.html', async (page) => {
        for (const id of ['headline', 'breakdown', 'timeline', 'critical', 'collectives', 'topology', 'memory', 'pipeline', 'inputs']) {
            checkEqual(await page.locator(`main > section#${id}`).count(), 1, `part ${id}`);
        }
        check(/rank/.test(await page.locator('#breakdown').innerText()), 'groups of ranks');
        /* Every step that names a track is found among the spans. */
        const jumps = await page.locator('#critical tbody button.link').count();
        check(jumps > 0, 'steps that can be shown');
        const name = await page.locator('#critical tbody button.link').first().innerText();
        await page.locator('#critical tbody button.link').first().click();
        checkEqual(await page.locator('.detail-name').innerText(), name);
    });
});

test('a file with markup in its name is shown as text', async () => {
    const hostile = '<img src=x onerror=document.body.dataset.hacked=1>.orr';
    copyFileSync(join(folder, 'small', 'step.orr'), join(folder, hostile));
    const [system, network, memory] = ['system.json', 'network.yml', 'memory.json'].map((name) => join('small', name));
    orrery(['run', hostile, '-s', system, '-t', network, '-m', memory, '--report', 'hostile.html']);
    await onReport('hostile.html', async (page) => {
        checkEqual(await page.locator('img').count(), 0);
        checkEqual(await page.evaluate(() => document.body.dataset.hacked ?? null), null);
        check((await page.locator('#inputs').innerText()).includes('<img'), 'the name is there');
    });
});

await runAll(() => browser.close());
