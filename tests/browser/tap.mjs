// SPDX-License-Identifier: Apache-2.0
// tap.mjs - the smallest test harness that prints TAP: tests run one after the other, each within a time limit.

const LIMIT_MS = 100000;

/** @type {{name: string, work: () => Promise<void> | void}[]} */
const tests = [];

/** @param {string} name  what is promised @param {() => Promise<void> | void} work */
export function test(name, work) {
    tests.push({name, work});
}

/** A line for people; tests/run does not count it. @param {string} text */
export function say(text) {
    console.log(`# ${text}`);
}

/** @param {unknown} condition @param {string} [words] */
export function check(condition, words = 'a condition does not hold') {
    if (!condition) throw new Error(words);
}

/** @param {unknown} got @param {unknown} want @param {string} [what] */
export function checkEqual(got, want, what = 'value') {
    const [left, right] = [got, want].map((value) => JSON.stringify(value));
    if (left !== right) throw new Error(`${what}: got ${left}, expected ${right}`);
}

/** @param {number} got @param {number} want @param {number} slack @param {string} [what] */
export function checkNear(got, want, slack, what = 'value') {
    if (!(Math.abs(got - want) <= slack)) throw new Error(`${what}: got ${got}, expected ${want} give or take ${slack}`);
}

/** @param {() => Promise<void> | void} work */
async function withinLimit(work) {
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`took more than ${LIMIT_MS / 1000} s`)), LIMIT_MS);
    });
    try {
        await Promise.race([work(), late]);
    } finally {
        clearTimeout(timer);
    }
}

/** Runs all; the status is 1 when one failed. @param {() => Promise<void> | void} [atEnd] */
export async function runAll(atEnd) {
    let failed = 0;
    for (const [k, {name, work}] of tests.entries()) {
        try {
            await withinLimit(work);
            console.log(`ok ${k + 1} - ${name}`);
        } catch (problem) {
            failed++;
            console.log(`not ok ${k + 1} - ${name}`);
            say(String(problem instanceof Error ? problem.stack : problem).replaceAll('\n', '\n# '));
        }
    }
    console.log(`1..${tests.length}`);
    await atEnd?.();
    process.exit(failed > 0 ? 1 : 0);
}

/** Nothing can be tried here: one skipped test, with the reason. @param {string} why @returns {never} */
export function skipAll(why) {
    console.log(`ok 1 - # skip ${why}\n1..1`);
    process.exit(0);
}
