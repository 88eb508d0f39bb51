"use strict";
// Two texts compared character by character (Myers, 1986, An O(ND) Difference Algorithm), and texts made visible.

const MOST_EDITS = 1200;

/** Runs [kind, text] that turn one text into the other: "=" in both, "-" only in the first, "+" only in the second. */
function compareTexts(first, second) {
  const a = Array.from(first), b = Array.from(second);
  let start = 0, endA = a.length, endB = b.length;
  while (start < endA && start < endB && a[start] === b[start]) start += 1;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) { endA -= 1; endB -= 1; }
  const middle = shortestEdit(a.slice(start, endA), b.slice(start, endB));
  const steps = middle || [["-", a.slice(start, endA).join("")], ["+", b.slice(start, endB).join("")]];
  const runs = [];
  for (const [kind, text] of [["=", a.slice(0, start).join("")], ...steps, ["=", a.slice(endA).join("")]]) {
    if (!text) continue;
    const last = runs[runs.length - 1];
    if (last && last[0] === kind) last[1] += text;
    else runs.push([kind, text]);
  }
  return { runs, whole: middle !== null };
}

function shortestEdit(a, b) {
  const most = Math.min(a.length + b.length, MOST_EDITS), offset = most + 1;
  const reach = new Int32Array(2 * most + 3);
  const trace = [];
  for (let edits = 0; edits <= most; edits += 1) {
    trace.push(reach.slice(offset - edits - 1, offset + edits + 2));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && reach[offset + k - 1] < reach[offset + k + 1]);
      let x = down ? reach[offset + k + 1] : reach[offset + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      reach[offset + k] = x;
      if (x >= a.length && x - k >= b.length) return backtrack(trace, a, b, edits);
    }
  }
  return null;
}

function backtrack(trace, a, b, edits) {
  const steps = [];
  let x = a.length, y = b.length;
  for (; edits > 0; edits -= 1) {
    const before = trace[edits], at = (k) => before[k + edits + 1];
    const k = x - y;
    const down = k === -edits || (k !== edits && at(k - 1) < at(k + 1));
    const fromX = at(down ? k + 1 : k - 1), fromY = fromX - (down ? k + 1 : k - 1);
    while (x > fromX && y > fromY) { x -= 1; y -= 1; steps.push(["=", a[x]]); }
    if (down) { y -= 1; steps.push(["+", b[y]]); } else { x -= 1; steps.push(["-", a[x]]); }
  }
  while (x > 0) { x -= 1; steps.push(["=", a[x]]); }
  return steps.reverse();
}

// Signs that cannot be seen, or that change how the text around them is shown.
const HIDDEN_SIGNS = /[\u0000-\u001f\u007f-\u00a0\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufffe\uffff]/g;

/** Append a text to a node as text; signs that cannot be seen stand as small names. */
function appendText(node, text) {
  let last = 0;
  for (const match of text.matchAll(HIDDEN_SIGNS)) {
    node.append(text.slice(last, match.index));
    const sign = document.createElement("span");
    const code = match[0].charCodeAt(0);
    sign.className = "sign";
    sign.textContent = { 9: "⇥", 10: "↵", 13: "␍", 160: "⍽" }[code]
      || (code < 32 ? String.fromCharCode(0x2400 + code) : "U+" + code.toString(16).toUpperCase().padStart(4, "0"));
    sign.title = "U+" + code.toString(16).toUpperCase().padStart(4, "0");
    node.append(sign);
    if (code === 10) node.append("\n");
    last = match.index + 1;
  }
  node.append(text.slice(last));
  return node;
}
