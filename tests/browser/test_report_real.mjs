// SPDX-License-Identifier: Apache-2.0
// test_report_real.mjs - report files that the program itself writes, opened in the browser: the two halves fit.

import {spawnSync} from 'node:child_process';
import {copyFileSync, mkdtempSync, readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {launchBrowser, openPage, scratch, timelineDone} from './chromium.mjs';
import {check, checkEqual, checkNear, runAll, test} from './tap.mjs';

const browser = await launchBrowser();
const folder = mkdtempSync(join(scratch(), 'real-'));

/** @param {string[]} words @param {number} [status] */
function orrery(words, status = 0) {
    const run = spawnSync('orrery', words, {cwd: folder, encoding: 'utf8', timeout: 90000});
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
    orrery(['run', join('small', 'step.orr'), '--machine', 'dgx-h100', '--report', 'step.html']);
    const run = documentOf('step.html').runs[0];
    for (const row of run.breakdown) {
        checkNear(row.compute_ns + row.comm_exposed_ns + row.memory_ns + row.host_ns + row.waiting_ns + row.bubble_ns + row.idle_ns, row.total_ns, 1, `the parts of ${row.name}`);
    }
    await onReport('step.html', async (page) => {
        for (const id of ['headline', 'breakdown', 'timeline', 'critical', 'collectives', 'topology', 'memory', 'pipeline', 'inputs']) {
            checkEqual(await page.locator(`main > section#${id}`).count(), 1, `part ${id}`);
        }
        check(/rank/.test(await page.locator('#breakdown').innerText()), 'groups of ranks');
        /* Every step that names a track is found among the spans. */
        const jumps = await page.locator('#critical button.link').count();
        check(jumps > 0, 'steps that can be shown');
        const name = await page.locator('#critical button.link').first().innerText();
        await page.locator('#critical button.link').first().click();
        checkEqual(await page.locator('.detail-name').innerText(), name);
    });
});

test('a file with markup in its name is shown as text', async () => {
    const hostile = '<img src=x onerror=document.body.dataset.hacked=1>.orr';
    copyFileSync(join(folder, 'small', 'step.orr'), join(folder, hostile));
    orrery(['run', hostile, '--machine', 'dgx-h100', '--report', 'hostile.html']);
    await onReport('hostile.html', async (page) => {
        checkEqual(await page.locator('img').count(), 0);
        checkEqual(await page.evaluate(() => document.body.dataset.hacked ?? null), null);
        check((await page.locator('#inputs').innerText()).includes('<img'), 'the name is there');
    });
});

test('hostile names inside a measured trace stay text', async () => {
    const hostile = '</script><script>document.body.dataset.hacked=1</script><b>\u2028"\\';
    const events = ['compute', 'network'].flatMap((thread, tid) => [
        {ph: 'M', name: 'thread_name', pid: 0, tid, args: {name: `${thread}${hostile}`}},
        ...Array.from({length: 50}, (_, k) => ({ph: 'X', name: `${hostile}${k}`, cat: 'kernel', pid: 0, tid, ts: 100 * k, dur: 60})),
    ]);
    writeFileSync(join(folder, 'trace.json'), JSON.stringify({traceEvents: events}));
    orrery(['report', 'trace.json', '--title', hostile, '-o', 'trace.html']);
    await onReport('trace.html', async (page) => {
        checkEqual(await page.evaluate(() => document.body.dataset.hacked ?? null), null, 'a script of a name ran');
        checkEqual(await page.locator('main b', {hasText: /^"/}).count(), 0);
        check((await page.title()).includes('</script>'), 'the title is the text');
        await page.keyboard.press('/');
        await page.keyboard.type('</script>');
        await page.keyboard.press('Enter');
        checkEqual((await page.locator('.found').innerText()), '1 of 100');
        check((await page.locator('.detail-name').innerText()).includes('</script><script>'), 'the details show it');
    });
});

test('two runs are compared, and both can be looked at', async () => {
    orrery(['stage', 'gpt2', '--tp', '4', '--batch', '2', '-o', 'step.orr', '-q']);
    for (const model of ['unaware', 'aware']) orrery(['run', 'step.orr', '--machine', 'dgx-h100', '-n', model, '--timeline', `${model}.json`]);
    orrery(['report', 'unaware.json', 'aware.json', '-o', 'both.html']);
    const [first, second] = documentOf('both.html').runs;
    check(second.headline.time_ns > first.headline.time_ns, 'congestion costs time');
    await onReport('both.html', async (page) => {
        check(/worse/.test(await page.locator('#comparison').innerText()), 'the second is worse');
        await page.locator('.tabs button').nth(1).click();
        await timelineDone(page);
        check(/aware\.json/.test(await page.locator('#inputs').innerText()), 'its own parts');
    });
});

test('flows over packets: links, queues, pauses and times, of flows alone and of traces', async () => {
    const flows = Array.from({length: 15}, (_, host) => `${host} 15 3 100 ${30000 * (host + 1)} 0`);
    writeFileSync(join(folder, 'flows.txt'), `${flows.length}\n${flows.join('\n')}\n`);
    writeFileSync(join(folder, 'leaves.yml'), 'generate: {type: leaf-spine, ranks: 16, ranks_per_leaf: 4, spines: 2, bandwidth: 100Gb/s, latency: 500ns}\n');
    orrery(['run', '--flows=flows.txt', '-t', 'leaves.yml', '--packet-keys', 'BUFFER_SIZE 1 HAS_WIN 0', '--report', 'flows.html']);
    const run = documentOf('flows.html').runs[0];
    checkEqual(run.fabric.flow_times.all.flows, 15);
    check(run.fabric.links.rows[0].utilisation > 0.9, 'the link to host 15 is busy');
    check(run.fabric.figures.pauses > 0 && run.fabric.pauses.rows.length > 0, 'ports were paused');
    const {page, complaints, close} = await openPage(browser, pathToFileURL(join(folder, 'flows.html')).href);
    for (const id of ['links', 'queues', 'pauses', 'flows', 'topology']) checkEqual(await page.locator(`main > section#${id}`).count(), 1, `part ${id}`);
    check(/-> 15/.test(await page.locator('#links svg.heatmap').innerHTML().then((/** @type {string} */ text) => text.replaceAll('&gt;', '>'))), 'the busiest link has a row');
    checkEqual(complaints, []);
    await close();
    orrery(['gen', 'all_reduce', '--ranks', '16', '--comm-size', '4194304', '-o', 'ar.orr', '-q']);
    writeFileSync(join(folder, 'ring.json'), '{"scheduling-policy":"LIFO","preferred-dataset-splits":1,"local-mem-bw":1600,"all-reduce-implementation":["ring"]}');
    orrery(['run', 'ar.orr', '-s', 'ring.json', '-t', 'leaves.yml', '-n', 'packet', '--what-if', 'off', '--report', 'packets.html']);
    await onReport('packets.html', async (report) => {
        for (const id of ['timeline', 'links', 'queues', 'flows']) checkEqual(await report.locator(`main > section#${id}`).count(), 1, `part ${id}`);
    });
});

test('a run that stalls says so first', async () => {
    /* Two ranks that both receive before they send. */
    for (const rank of [0, 1]) {
        const attr = (/** @type {string} */ peer) => `"attr":[{"name":"${peer}","int32Val":${1 - rank}},{"name":"comm_size","int64Val":"64"},{"name":"comm_tag","int32Val":0}]`;
        writeFileSync(join(folder, `ring.${rank}.jsonl`), `{"id":"1","name":"from_other","type":"COMM_RECV_NODE",${attr('comm_src')}}\n` +
            `{"id":"2","name":"to_other","type":"COMM_SEND_NODE","dataDeps":["1"],${attr('comm_dst')}}\n`);
    }
    writeFileSync(join(folder, 'sys.json'), '{"scheduling-policy":"LIFO","preferred-dataset-splits":1,"local-mem-bw":50,"all-reduce-implementation":["ring"]}');
    writeFileSync(join(folder, 'two.yml'), 'topology: [ Switch ]\nnpus_count: [ 2 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n');
    orrery(['run', 'ring', '-s', 'sys.json', '-t', 'two.yml', '--report', 'stall.html'], 3);
    const {page, complaints, close} = await openPage(browser, pathToFileURL(join(folder, 'stall.html')).href);
    checkEqual(await page.$eval('main > section', (/** @type {Element} */ part) => part.id), 'stall');
    check(/rank/.test(await page.locator('#stall').innerText()), 'who waits');
    checkEqual(complaints, []);
    await close();
});

await runAll(() => browser.close());
