// SPDX-License-Identifier: Apache-2.0
// chromium.mjs - Debian's chromium, headless, driven by playwright-core from the build folder; files only, no server.

import {accessSync, constants, mkdtempSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {delimiter, join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {assemble} from './assemble.mjs';
import {SAMPLES} from './make_data.mjs';
import {skipAll} from './tap.mjs';

export const ROOT = process.env.ORR_ROOT ?? new URL('../..', import.meta.url).pathname;
export const WEB = join(ROOT, 'web');
const BUILD = process.env.ORR_BUILD ?? join(ROOT, 'build');

/** A program in PATH. @param {string[]} names */
export function findProgram(...names) {
    for (const folder of (process.env.PATH ?? '').split(delimiter)) {
        for (const name of names) {
            try {
                accessSync(join(folder, name), constants.X_OK);
                return join(folder, name);
            } catch {
                continue;
            }
        }
    }
    return null;
}

/** A package of the build folder, or null. @param {string} name */
export function packageOfBuild(name) {
    try {
        return createRequire(join(BUILD, 'browser', 'here.cjs'))(name);
    } catch {
        return null;
    }
}

/** Ends as skipped where there is no browser. @param {object} [options]  more of playwright's */
export async function launchBrowser(options = {}) {
    const playwright = packageOfBuild('playwright-core');
    if (!playwright) skipAll('playwright-core is not installed (tests/browser/install.sh)');
    const program = process.env.ORR_CHROMIUM ?? findProgram('chromium', 'chromium-browser', 'google-chrome');
    if (!program) skipAll('chromium is not installed');
    /* Its own sandbox does not work for root, nor in most containers. */
    const args = ['--disable-gpu', '--disable-dev-shm-usage', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])];
    return playwright.chromium.launch({executablePath: program, args, timeout: 60000, ...options});
}

let folder = '';

/** Where this run writes its files: gone with the test's folder. */
export function scratch() {
    folder ||= mkdtempSync(join(process.env.TMPDIR ?? tmpdir(), 'page-'));
    return folder;
}

/** @param {string} name @param {string} text @returns {string} its address */
export function writePage(name, text) {
    const path = join(scratch(), `${name}.html`);
    writeFileSync(path, text);
    return pathToFileURL(path).href;
}

/** @type {Map<string, string>} */
const samplePages = new Map();

/** The address of a sample, written once. @param {string} name */
export function samplePage(name) {
    let address = samplePages.get(name);
    if (!address) samplePages.set(name, address = writePage(name, assemble(WEB, SAMPLES[name]())));
    return address;
}

/** Opens a page that may not complain: errors, warnings and requests of any network are collected.
 *  @param {any} browser @param {string} address @param {object} [options]  of playwright's newContext */
export async function openPage(browser, address, options = {}) {
    const context = await browser.newContext({viewport: {width: 1400, height: 900}, reducedMotion: 'reduce', ...options});
    const page = await context.newPage();
    page.setDefaultTimeout(60000);
    /** @type {string[]} */
    const complaints = [];
    page.on('console', (/** @type {any} */ message) => {
        if (['error', 'warning'].includes(message.type())) complaints.push(`${message.type()}: ${message.text()}`);
    });
    page.on('pageerror', (/** @type {Error} */ problem) => complaints.push(`exception: ${problem.message}`));
    page.on('request', (/** @type {any} */ request) => {
        if (request.url().split('#')[0] !== address.split('#')[0] && !/^(data|blob):/.test(request.url())) complaints.push(`request: ${request.url()}`);
    });
    await page.goto(address);
    await page.waitForFunction(() => document.documentElement.dataset.page === 'ready' || document.querySelector('.problem') !== null);
    return {page, complaints, close: () => context.close()};
}

/** Until the events are decoded and every row has its levels. @param {any} page */
export async function timelineDone(page) {
    await page.waitForFunction(() => document.documentElement.dataset.timeline === 'complete');
    await nextFrame(page);
}

/** Until what was asked for is drawn. @param {any} page */
export async function nextFrame(page) {
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}
