// SPDX-License-Identifier: Apache-2.0
// dom.js - elements from code.  Text is always inserted as text: names come from traces and may contain anything.

const SVG_NAMESPACE = 'http://www.w3.org/2000/svg';

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes */

/** Attributes; functions become listeners ("onclick"), true an empty attribute, null and false none.
 *  @param {Element} element @param {Attributes} attributes */
function setAttributes(element, attributes) {
    for (const [name, value] of Object.entries(attributes)) {
        if (value === null || value === undefined || value === false) continue;
        if (typeof value === 'function') {
            element.addEventListener(name.replace(/^on/, ''), value);
        } else {
            element.setAttribute(name, value === true ? '' : String(value));
        }
    }
}

/** @param {Element} element @param {Child[]} children */
function addChildren(element, children) {
    for (const child of children) {
        if (child === null || child === undefined || child === false) continue;
        element.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
}

/** el('p', {class: 'note'}, 'text', el('b', {}, 'bold'))
 *  @template {keyof HTMLElementTagNameMap} K
 *  @param {K} tag @param {Attributes} [attributes] @param {...Child} children
 *  @returns {HTMLElementTagNameMap[K]} */
export function el(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    setAttributes(element, attributes);
    addChildren(element, children);
    return element;
}

/** The same for SVG.
 *  @template {keyof SVGElementTagNameMap} K
 *  @param {K} tag @param {Attributes} [attributes] @param {...Child} children
 *  @returns {SVGElementTagNameMap[K]} */
export function svg(tag, attributes = {}, ...children) {
    const element = /** @type {SVGElementTagNameMap[K]} */ (document.createElementNS(SVG_NAMESPACE, tag));
    setAttributes(element, attributes);
    addChildren(element, children);
    return element;
}

/** An element of the template. @param {string} id @returns {HTMLElement} */
export function byId(id) {
    const found = document.getElementById(id);
    if (!found) throw new Error(`the page has no element "${id}"`);
    return found;
}

/** A help icon with the meaning of a term as its tooltip. @param {string} text @param {string} meaning */
export function explained(text, meaning) {
    return el('span', {class: 'explained', title: meaning}, text);
}

/** Lets the browser paint and handle input before work continues. @returns {Promise<void>} */
export function breathe() {
    return new Promise((resolve) => setTimeout(resolve, 0));
}

/** Is keyboard input meant for a text field? @param {EventTarget | null} target */
export function isTextField(target) {
    return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
