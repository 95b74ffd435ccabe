// What a page can do beyond being read. Everything works without it, apart from search and keys.
"use strict";

const body = document.body;
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const one = (selector, within = document) => within.querySelector(selector);
body.classList.add("js");

// A browser may refuse storage, as it does for files; then a choice lasts for the page.
const memory = {
	get(key) { try { return localStorage.getItem("ladder-" + key); } catch { return null; } },
	set(key, value) { try { localStorage.setItem("ladder-" + key, value); } catch { /* forgotten */ } },
};

// ---------------------------------------------------------------- light and dark
const root = document.documentElement;
function theme() {
	const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
	root.dataset.theme = dark ? "light" : "dark";
	memory.set("theme", root.dataset.theme);
}

// ------------------------------------------------------------------ the code pane
const code = one("#code");
const narrow = () => matchMedia("(max-width: 79.99em)").matches; // one pane at a time, as in site.css

function press(what, on) {
	for (const button of all(`[data-do="${what}"]`)) button.setAttribute("aria-pressed", on);
}
function sides(on = !code.classList.contains("sides")) {
	code.classList.toggle("sides", on);
	press("sides", on);
	memory.set("sides", on ? "yes" : "no");
}
function wide(on = !body.classList.contains("wide")) {
	body.classList.toggle("wide", on);
	press("wide", on);
	for (const button of all('[data-do="wide"]')) button.textContent = on ? "Text and code" : "Wide";
}
function fold() {
	const files = all("details.file");
	const open = files.some((file) => file.open);
	for (const file of files) file.open = !open;
	for (const button of all('[data-do="fold"]')) button.textContent = open ? "Unfold" : "Fold";
}
// Where there is room for one pane only, each keeps its place, and Back leads from the code to the text.
const places = { text: 0, code: 0 };
const shown = () => (body.classList.contains("show-code") ? "code" : "text");
function pane(name, entry = narrow()) {
	if (!code || name === shown()) return;
	places[shown()] = scrollY;
	if (entry) { // before anything moves: the browser keeps the place with the entry
		if (name === "code") history.pushState({ pane: "code" }, "");
		else history.replaceState({ pane: "text" }, "");
	}
	body.classList.toggle("show-code", name === "code");
	for (const button of all(".tabs button")) button.setAttribute("aria-pressed", button.dataset.pane === name);
	if (narrow()) scrollTo(0, places[name]);
}
addEventListener("popstate", (event) => { if (narrow()) pane(event.state?.pane || "text", false); });
if (code && memory.get("sides") === "yes") sides(true);

// ---------------------------------------------- from a paragraph to its code and back
const marks = all(".to-hunk");
let current = -1;

function light(hunk, mark) {
	for (const on of all(".on", one(".panes"))) on.classList.remove("on");
	if (hunk) hunk.classList.add("on");
	if (mark) mark.classList.add("on");
	current = mark ? marks.indexOf(mark) : current;
}
// reveal shows a piece of code; mark is the paragraph's mark that asked for it.
function reveal(id, mark, toText = true) {
	const hunk = document.getElementById(id);
	if (!hunk || !hunk.classList.contains("hunk")) return false;
	mark = mark || marks.find((each) => each.hash === "#" + id);
	if (toText) wide(body.classList.contains("wide") && !mark);
	if (narrow()) pane("code");
	pause();
	const file = hunk.closest("details");
	file.open = true;
	light(hunk, mark);
	hunk.scrollIntoView({ block: "start" });
	return true;
}
// explain shows the paragraph that a mark stands in.
function explain(mark) {
	wide(false);
	if (narrow()) pane("text");
	pause();
	light(document.getElementById(decodeURIComponent(mark.hash.slice(1))), mark);
	mark.scrollIntoView({ block: "center" });
	mark.focus({ preventScroll: true });
}
function step(by) {
	if (!marks.length) return;
	current = Math.min(marks.length - 1, Math.max(0, current + by));
	const mark = marks[current];
	pause();
	if (!narrow()) mark.scrollIntoView({ block: "center" });
	reveal(decodeURIComponent(mark.hash.slice(1)), mark);
	mark.focus({ preventScroll: true });
}
document.addEventListener("click", (event) => {
	const link = event.target.closest("a[href^='#']");
	if (!link) return;
	const id = decodeURIComponent(link.hash.slice(1));
	const target = document.getElementById(id);
	if (target && target.classList.contains("hunk")) {
		event.preventDefault();
		reveal(id, link.classList.contains("to-hunk") ? link : null, link.classList.contains("to-hunk"));
		history.replaceState(history.state, "", link.hash);
	} else if (target && target.classList.contains("to-hunk")) {
		event.preventDefault();
		explain(target);
	}
});
// While one reads, the code follows the text: the last mark above the middle of the window decides. It does not after
// something else has asked for a place, until the reader has scrolled again.
let paused = 0, follows = memory.get("follow") !== "no";
const pause = () => { paused = performance.now() + 500; };
function follow(on = !follows) {
	follows = on;
	press("follow", on);
	memory.set("follow", on ? "yes" : "no");
}
let asked = false;
function followText() {
	asked = false;
	if (!follows || narrow() || body.classList.contains("wide") || performance.now() < paused) return;
	const mark = marks.findLast((each) => each.getBoundingClientRect().top < innerHeight / 2);
	if (!mark || mark === marks[current]) return;
	const hunk = document.getElementById(decodeURIComponent(mark.hash.slice(1)));
	if (!hunk) return;
	hunk.closest("details").open = true;
	light(hunk, mark);
	code.scrollTo({ top: code.scrollTop + hunk.getBoundingClientRect().top - code.getBoundingClientRect().top - one(".bar", code).offsetHeight });
}
if (code && marks.length) {
	follow(follows);
	addEventListener("scroll", () => { if (!asked) { asked = true; requestAnimationFrame(followText); } }, { passive: true });
}

function followHash() {
	const id = decodeURIComponent(location.hash.slice(1));
	if (id && !reveal(id)) {
		const target = document.getElementById(id);
		if (target && target.classList.contains("to-hunk")) explain(target);
	}
}
addEventListener("hashchange", followHash);
followHash();

// -------------------------------------------------------------------------- search
const search = one("#search");
const field = one("input", search);
const list = one("ul", search);
const up = body.dataset.up || "";
const escape = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

function find(query) {
	const words = query.toLowerCase().split(/\s+/).filter(Boolean);
	if (!words.length) return [];
	const found = [];
	for (const entry of window.searchIndex || []) {
		const heading = entry.h.toLowerCase(), text = entry.t.toLowerCase(), page = entry.p.toLowerCase();
		let score = 0;
		for (const word of words) {
			const times = text.split(word).length - 1;
			const here = (heading.includes(word) ? 12 : 0) + (heading.startsWith(word) ? 8 : 0) + (page.includes(word) ? 4 : 0) + Math.min(times, 5);
			if (!here) { score = 0; break; }
			score += here;
		}
		if (score) found.push({ entry, score });
	}
	found.sort((a, b) => b.score - a.score);
	return found.slice(0, 20).map((each) => each.entry);
}
function excerpt(text, words) {
	const at = Math.max(0, Math.min(...words.map((word) => { const i = text.toLowerCase().indexOf(word); return i < 0 ? Infinity : i; })) - 40);
	const part = isFinite(at) ? text.slice(at, at + 150) : text.slice(0, 150);
	let shown = escape(part);
	for (const word of words) {
		shown = shown.replace(new RegExp(escape(word).replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi"), "<mark>$&</mark>");
	}
	return (at > 0 && isFinite(at) ? "… " : "") + shown;
}
function show() {
	const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
	list.innerHTML = find(field.value).map((entry, i) =>
		`<li><a href="${up}${escape(entry.u)}" class="${i ? "" : "on"}"><strong>${escape(entry.h)}</strong>${entry.h === entry.p ? "" : " · " + escape(entry.p)}<small>${excerpt(entry.t, words)}</small></a></li>`).join("")
		|| (words.length ? "<li>Nothing.</li>" : "");
}
function choose(by) {
	const links = all("a", list);
	if (!links.length) return;
	const at = links.findIndex((link) => link.classList.contains("on"));
	const next = links[Math.min(links.length - 1, Math.max(0, at + by))];
	for (const link of links) link.classList.remove("on");
	next.classList.add("on");
	next.scrollIntoView({ block: "nearest" });
}
function openSearch() {
	if (!search.open) search.showModal();
	field.select();
	show();
}
field.addEventListener("input", show);
field.addEventListener("keydown", (event) => {
	if (event.key === "ArrowDown" || event.key === "ArrowUp") {
		event.preventDefault();
		choose(event.key === "ArrowDown" ? 1 : -1);
	} else if (event.key === "Enter") {
		event.preventDefault();
		const chosen = one("a.on", list);
		if (chosen) { search.close(); chosen.click(); }
	}
});
list.addEventListener("click", () => search.close());

// ---------------------------------------------------------------------------- keys
const help = one("#help");
const go = (link) => { if (link) link.click(); };
function mine(on = !body.classList.contains("with-mine")) {
	body.classList.toggle("with-mine", on);
	press("mine", on);
	memory.set("mine", on ? "yes" : "no");
}
if (body.classList.contains("with-mine")) mine(memory.get("mine") !== "no");
const actions = { mine: () => mine(), search: openSearch, theme, help: () => help.showModal(), sides: () => sides(), wide: () => wide(), follow: () => follow(), fold };
for (const button of all("[data-do]")) button.addEventListener("click", () => actions[button.dataset.do]());
for (const button of all(".tabs button")) button.addEventListener("click", () => pane(button.dataset.pane));

addEventListener("keydown", (event) => {
	if (event.key === "Escape") {
		// One press closes; a search field would take the first one to empty itself.
		const open = one("dialog[open]");
		if (open) { event.preventDefault(); open.close(); }
		one(".menu").open = false;
		return;
	}
	// The field of the search may keep the focus for a moment after its dialog has closed: the key is no text then.
	if (event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]") || event.target.closest?.(".flame input")) return;
	const keys = {
		"/": openSearch, "?": () => help.showModal(), t: theme,
		j: () => step(1), k: () => step(-1),
		n: () => go(one('a[rel="next"]')), p: () => go(one('a[rel="prev"]')),
	};
	if (code) Object.assign(keys, {
		d: () => sides(), w: () => wide(), f: fold,
		c: () => {
			if (narrow()) pane(body.classList.contains("show-code") ? "text" : "code");
			else (code.contains(document.activeElement) ? one("#text") : code).focus();
		},
	});
	const stage = /^[0-5]$/.test(event.key) && all(".ladder a")[Number(event.key)];
	const act = stage ? () => go(stage) : keys[event.key];
	if (act) {
		event.preventDefault();
		act();
	}
});
document.addEventListener("click", (event) => {
	const menu = one(".menu");
	if (menu.open && !menu.contains(event.target)) menu.open = false;
});

// ------------------------------------------------ contents, anchors, copies and words explained
if (!code && !narrow()) for (const contents of all(".contents")) contents.open = true; // beside the text
for (const heading of all("main :is(h2, h3)[id]")) {
	const link = document.createElement("a");
	link.className = "anchor";
	link.href = "#" + heading.id;
	link.textContent = "#";
	link.setAttribute("aria-label", "Link to: " + heading.textContent);
	heading.append(link);
}
for (const block of all("pre.block")) {
	const around = document.createElement("div"), button = document.createElement("button");
	around.className = "copied";
	button.type = "button";
	button.textContent = "Copy";
	button.addEventListener("click", async () => {
		try {
			await navigator.clipboard.writeText(block.textContent);
		} catch { // pages that are opened as files may not
			getSelection().selectAllChildren(block);
			document.execCommand("copy");
		}
		button.textContent = "Copied";
		setTimeout(() => { button.textContent = "Copy"; }, 1500);
	});
	block.replaceWith(around);
	around.append(block, button);
}
const tip = document.createElement("div");
tip.className = "tip";
tip.id = "tip";
tip.setAttribute("role", "tooltip");
tip.hidden = true;
body.append(tip);
function explainTerm(link) {
	tip.textContent = link.dataset.term;
	tip.hidden = false;
	link.setAttribute("aria-describedby", "tip");
	const at = link.getBoundingClientRect();
	tip.style.left = Math.max(8, Math.min(at.left, innerWidth - tip.offsetWidth - 8)) + scrollX + "px";
	tip.style.top = (at.bottom + tip.offsetHeight + 12 < innerHeight ? at.bottom + 6 : at.top - tip.offsetHeight - 6) + scrollY + "px";
}
for (const link of all("a[data-term]")) {
	for (const on of ["mouseenter", "focus"]) link.addEventListener(on, () => explainTerm(link));
	for (const off of ["mouseleave", "blur"]) link.addEventListener(off, () => { tip.hidden = true; });
}

// On paper nothing is folded.
let folded = [];
addEventListener("beforeprint", () => {
	folded = all("details:not([open])");
	for (const each of folded) each.open = true;
});
addEventListener("afterprint", () => { for (const each of folded) each.open = false; });
