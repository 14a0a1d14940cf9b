// SPDX-License-Identifier: Apache-2.0
// make_pictures.mjs - the pictures of README and docs, from reports that the program writes now: make docs
//
//     node tests/browser/make_pictures.mjs FOLDER

import {spawnSync} from 'node:child_process';
import {mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';
import {launchBrowser, nextFrame, openPage, timelineDone} from './chromium.mjs';

const BYTES_MOST = 300000;
const to = resolve(process.argv[2] ?? 'docs/pictures');
const work = mkdtempSync(join(tmpdir(), 'pictures-'));

/** @param {...string} words */
function orrery(...words) {
    const run = spawnSync('orrery', words, {cwd: work, encoding: 'utf8', timeout: 300000});
    if (run.status !== 0) throw new Error(`orrery ${words.join(' ')}: ${run.stderr}${run.error ?? ''}`);
}

/** @param {any} browser @param {string} report @param {'light' | 'dark'} colorScheme @param {(page: any) => Promise<void>} take */
async function onReport(browser, report, colorScheme, take) {
    const {page, close} = await openPage(browser, pathToFileURL(join(work, report)).href, {colorScheme, viewport: {width: 1240, height: 800}});
    if (await page.locator('canvas.timeline-canvas').count() > 0) await timelineDone(page);
    /* A head that stays would lie over the parts. */
    await page.addStyleTag({content: '#top { position: static !important; }'});
    await take(page);
    await close();
}

/** @param {any} target  a page or a part of it @param {string} name */
async function shoot(target, name) {
    const path = join(to, `${name}.png`);
    await target.screenshot({path, animations: 'disabled'});
    const {size} = statSync(path);
    console.log(`${path}: ${Math.round(size / 1000)} kB`);
    if (size > BYTES_MOST) throw new Error(`${path} has ${size} bytes; ${BYTES_MOST} are enough for a picture`);
}

/** Parts of a training step with the layers of one micro-batch readable. @param {any} page */
async function zoomedTimeline(page) {
    const canvas = page.locator('canvas.timeline-canvas');
    await canvas.focus();
    await page.keyboard.press('/');
    await page.keyboard.type('mb0.layer1.ffn.up');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    for (let k = 0; k < 2; k++) await page.keyboard.press('w');
    await canvas.blur();
    await nextFrame(page);
}

/** Many flows of all sizes over a leaf-spine network, and 32 hosts that send to one at once. */
function writeFlows() {
    let state = 12345;
    const random = () => (state = (state * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
    const flows = Array.from({length: 600}, () => {
        const from = Math.floor(random() * 64);
        return {at: random() * 4e-4, words: `${from} ${(from + 1 + Math.floor(random() * 63)) % 64} 3 100 ${Math.floor(10 ** (2.5 + 4.1 * random()))}`};
    });
    for (let host = 16; host < 48; host++) flows.push({at: 1.5e-4, words: `${host} 3 3 100 400000`});
    flows.sort((a, b) => a.at - b.at);
    writeFileSync(join(work, 'flows.txt'), `${flows.length}\n${flows.map(({at, words}) => `${words} ${at.toFixed(9)}\n`).join('')}`);
    orrery('gen', 'topology', 'leaf-spine', '--hosts', '64', '--hosts-per-leaf', '16', '--spines', '4', '--oversubscription', '2', '--nic', '100Gbps', '--latency', '1us', '-o', 'leaves.txt', '-q');
    orrery('run', '--flows=flows.txt', '-t', 'leaves.txt', '--packet-keys', 'BUFFER_SIZE 2', '--report', 'flows.html', '-q');
}

mkdirSync(to, {recursive: true});
try {
    orrery('demo', '-o', 'large', '-q');
    orrery('demo', '--ranks', '32', '-o', 'small', '-q');
    orrery('stage', 'gpt2', '--tp', '4', '--batch', '2', '-o', 'step.orr', '-q');
    for (const network of ['unaware', 'aware']) orrery('run', 'step.orr', '--machine', 'dgx-h100', '-n', network, '--timeline', `${network}.json`, '-q');
    orrery('report', 'unaware.json', 'aware.json', '--title', 'Without and with congestion', '-o', 'both.html', '-q');
    const browser = await launchBrowser();
    await onReport(browser, join('large', 'report.html'), 'light', async (page) => {
        await shoot(page, 'report');
        await shoot(page.locator('#timeline'), 'report_timeline');
    });
    await onReport(browser, join('large', 'report.html'), 'dark', async (page) => {
        await zoomedTimeline(page);
        await shoot(page.locator('#timeline'), 'report_timeline_dark');
    });
    await onReport(browser, join('small', 'report.html'), 'dark', (page) => shoot(page.locator('#topology'), 'report_network'));
    await onReport(browser, join('small', 'report.html'), 'light', (page) => shoot(page.locator('#memory'), 'report_memory'));
    await onReport(browser, 'both.html', 'light', (page) => shoot(page, 'report_comparison'));
    writeFlows();
    await onReport(browser, 'flows.html', 'light', (page) => shoot(page.locator('#links .heatmap-place'), 'report_links'));
    await onReport(browser, 'flows.html', 'dark', (page) => shoot(page.locator('#flows'), 'report_flows'));
    await browser.close();
} finally {
    rmSync(work, {recursive: true, force: true});
}
