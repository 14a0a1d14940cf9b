// SPDX-License-Identifier: Apache-2.0
// @ts-check
const data = JSON.parse(/** @type {HTMLElement} */ (document.getElementById('orrery-data')).textContent || '');
const heading = document.createElement('h1');
heading.textContent = data.title;
/** @type {HTMLElement} */ (document.getElementById('page')).append(heading);
