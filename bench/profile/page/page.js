'use strict';
// Draws flame graphs of the data in this page. A frame is [name, values, children]: the name is an index into
// names, the values are nanoseconds per request, one for a graph and two for a difference.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const kinds = ['kernel', 'runtime', 'library', 'project', 'all'];
  const height = 18; // of a frame
  const narrow = 0.8; // pixels: what is narrower is not drawn
  const at = (id) => document.getElementById(id);
  const chart = at('chart'), detail = at('detail'), search = at('search'), matched = at('matched'), out = at('out');

  const make = (tag, text, className) => {
    const e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    if (className) e.className = className;
    return e;
  };
  const micro = (ns) => {
    const us = Math.abs(ns) / 1000;
    return (us >= 100 ? us.toFixed(0) : us >= 10 ? us.toFixed(1) : us >= 0.1 ? us.toFixed(2) : us.toFixed(3)) + ' µs';
  };
  const signed = (ns) => (ns < 0 ? '−' : '+') + micro(ns);
  const percent = (share) => (100 * share).toFixed(share < 0.0995 ? 2 : 1) + '%';
  const sum = (values) => values.reduce((a, b) => a + b, 0);

  // Each frame becomes an object that knows its place in the whole: x and width as shares of it.
  function grow(raw, parent, x, total) {
    const [index, values, children] = raw;
    const [name, kind] = data.names[index];
    const node = { name, kind: kinds[kind], values, parent, depth: parent ? parent.depth + 1 : 0, x, width: sum(values) / total, children: [] };
    node.own = values.slice();
    for (const child of children || []) {
      const n = grow(child, node, x, total);
      node.children.push(n);
      n.values.forEach((v, i) => { node.own[i] = Math.max(0, node.own[i] - v); });
      x += n.width;
    }
    return node;
  }
  const views = data.views.map((v) => {
    const root = grow(v.tree, null, 0, Math.max(sum(v.tree[1]), 1e-9));
    let depth = 0;
    const measure = (n) => { depth = Math.max(depth, n.depth); n.children.forEach(measure); };
    measure(root);
    return { ...v, root, depth, difference: v.tree[1].length === 2 };
  });

  let view, zoomed, current, term = '';

  // A difference counts when it is past what samples scatter: twice the standard error of both counts together.
  const change = (node, values) => {
    const [a, b] = values;
    const scatter = 2 * Math.sqrt(a * view.step[0] + b * view.step[1]);
    return { delta: b - a, told: Math.abs(b - a) > scatter };
  };
  const tint = (node) => {
    const { delta, told } = change(node, node.values);
    if (!told) return 'var(--same)';
    const strength = 0.2 + 0.7 * Math.min(1, Math.abs(delta) / Math.max(...node.values));
    return `rgba(var(--${delta > 0 ? 'grew' : 'shrank'}), ${strength.toFixed(2)})`;
  };

  function describe(node) {
    if (view.difference) {
      const [a, b] = node.values;
      const { delta, told } = change(node, node.values);
      return `${node.name} — ${view.labels[0]} ${micro(a)}, ${view.labels[1]} ${micro(b)} per request: ${signed(delta)}` +
        (told ? '' : ', no difference that these samples can tell') + (node.own[0] + node.own[1] > 1 ? `; its own code ${signed(node.own[1] - node.own[0])}` : '');
    }
    const total = view.root.values[0];
    return `${node.name} — ${percent(node.values[0] / total)} of the whole, ${micro(node.values[0])} per request` +
      `; its own code ${percent(node.own[0] / total)}, ${micro(node.own[0])}` +
      (zoomed !== view.root && zoomed.values[0] > 0 ? `; ${percent(node.values[0] / zoomed.values[0])} of what is shown` : '');
  }

  const matches = (node) => term !== '' && node.name.toLowerCase().includes(term);

  // What a search finds, without counting a frame twice that lies on another found one.
  function share() {
    let found = 0;
    const walk = (n) => { if (matches(n)) found += n.width; else n.children.forEach(walk); };
    walk(view.root);
    return found;
  }

  function draw() {
    chart.textContent = '';
    const pixels = chart.clientWidth;
    let deepest = 0;
    const put = (node, left, width) => {
      if (width * pixels < narrow) return;
      deepest = Math.max(deepest, node.depth);
      const e = make('div', undefined, 'frame');
      const above = node.depth < zoomed.depth;
      if (width * pixels > 24) e.textContent = node.name; else if (width * pixels < 3) e.classList.add('thin');
      e.style.left = (100 * left).toFixed(4) + '%';
      e.style.width = (100 * width).toFixed(4) + '%';
      e.style.bottom = node.depth * height + 'px';
      if (view.difference) e.style.background = tint(node); else e.classList.add(node.kind);
      if (above) e.classList.add('faded');
      if (matches(node)) e.classList.add('match');
      if (node === current) e.classList.add('current');
      e.setAttribute('role', 'treeitem');
      e.node = node;
      chart.append(e);
    };
    for (let n = zoomed.parent; n; n = n.parent) put(n, 0, 1);
    const walk = (n) => {
      put(n, (n.x - zoomed.x) / zoomed.width, n.width / zoomed.width);
      if (n.width / zoomed.width * pixels >= narrow) n.children.forEach(walk);
    };
    walk(zoomed);
    chart.style.height = (deepest + 1) * height + 'px';
    out.disabled = zoomed === view.root;
    matched.textContent = term === '' ? '' : share() === 0 ? 'nothing found' : `${percent(share())} of the ${view.difference ? 'two together' : 'whole'}`;
    detail.textContent = describe(current || zoomed);
  }

  function list() {
    const byName = new Map();
    const walk = (n, inside) => {
      let f = byName.get(n.name);
      if (!f) byName.set(n.name, f = { name: n.name, kind: n.kind, own: n.values.map(() => 0), all: n.values.map(() => 0) });
      n.own.forEach((v, i) => { f.own[i] += v; });
      if (!inside.has(n.name)) n.values.forEach((v, i) => { f.all[i] += v; });
      const deeper = inside.has(n.name) ? inside : new Set(inside).add(n.name);
      n.children.forEach((c) => walk(c, deeper));
    };
    view.root.children.forEach((c) => walk(c, new Set()));
    const functions = [...byName.values()];
    const table = at('list');
    table.textContent = '';
    const row = (cells, tag) => {
      const r = make('tr');
      for (const c of cells) r.append(c instanceof Node ? c : make(tag, c));
      table.append(r);
    };
    const named = (f) => {
      const cell = make('td'), mark = make('i', '', f.kind), b = make('button', f.name);
      b.type = 'button';
      b.addEventListener('click', () => { search.value = f.name; find(); chart.scrollIntoView({ block: 'nearest' }); });
      cell.append(mark, b);
      return cell;
    };
    if (view.difference) {
      at('listed').textContent = 'What changed most in its own code, per request';
      row(['function', view.labels[0], view.labels[1], 'difference'], 'th');
      functions.map((f) => ({ ...f, ...change(f, f.own) })).filter((f) => f.told)
        .sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta)).slice(0, 30)
        .forEach((f) => row([named(f), micro(f.own[0]), micro(f.own[1]), signed(f.delta)], 'td'));
      return;
    }
    const total = view.root.values[0];
    at('listed').textContent = 'Functions by the time of their own code';
    row(['function', 'own, per request', 'own', 'with what it calls'], 'th');
    functions.sort((a, b) => b.own[0] - a.own[0]).slice(0, 25)
      .forEach((f) => row([named(f), micro(f.own[0]), percent(f.own[0] / total), percent(f.all[0] / total)], 'td'));
  }

  function legend() {
    const entries = view.difference
      ? [['rgba(var(--grew), .8)', `more in ${view.labels[1]}`], ['rgba(var(--shrank), .8)', `less in ${view.labels[1]}`], ['var(--same)', 'no difference that these samples can tell'], [null, 'width: both together']]
      : [['var(--kernel)', 'Linux kernel'], ['var(--runtime)', "Go's runtime"], ['var(--library)', "Go's library and modules"], ['var(--project)', 'this project']];
    at('legend').replaceChildren(...entries.map(([colour, text]) => {
      const item = make('li');
      if (colour) { const mark = make('i'); mark.style.background = colour; item.append(mark); }
      item.append(text);
      return item;
    }));
  }

  function buttons(id, labels, chosen, choose) {
    at(id).replaceChildren(...(labels.length < 2 ? [] : labels.map((label) => {
      const b = make('button', label);
      b.type = 'button';
      b.setAttribute('aria-pressed', label === chosen);
      b.addEventListener('click', () => choose(label));
      return b;
    })));
  }
  const unique = (list) => [...new Set(list)];

  function show(next) {
    view = next;
    zoomed = view.root;
    current = null;
    at('about').textContent = view.about;
    buttons('graphs', unique(views.filter((v) => v.source === view.source).map((v) => v.title)), view.title,
      (title) => show(views.find((v) => v.title === title && v.source === view.source)));
    buttons('sources', unique(views.map((v) => v.source)), view.source,
      (source) => show(views.find((v) => v.source === source && v.title === view.title) || views.find((v) => v.source === source)));
    legend();
    draw();
    list();
  }

  function zoom(node) {
    zoomed = node;
    draw();
  }
  function find() {
    term = search.value.trim().toLowerCase();
    draw();
  }
  // The widest frame of that name.
  function named(name) {
    let best = null;
    const walk = (n) => { if (n.name === name && (!best || n.width > best.width)) best = n; n.children.forEach(walk); };
    walk(view.root);
    return best;
  }

  const under = (event) => event.target.closest('.frame')?.node;
  chart.addEventListener('mouseover', (event) => { const n = under(event); if (n) detail.textContent = describe(n); });
  chart.addEventListener('mouseleave', () => { detail.textContent = describe(current || zoomed); });
  chart.addEventListener('click', (event) => { const n = under(event); if (n) { current = null; zoom(n); } });
  chart.addEventListener('keydown', (event) => {
    const from = current || zoomed;
    const siblings = from.parent ? from.parent.children : [from];
    const widest = (list) => list.reduce((a, b) => (!a || b.width > a.width ? b : a), null);
    const next = {
      ArrowUp: () => widest(from.children), ArrowDown: () => from.parent,
      ArrowLeft: () => siblings[siblings.indexOf(from) - 1], ArrowRight: () => siblings[siblings.indexOf(from) + 1],
    }[event.key];
    if (next) {
      event.preventDefault();
      current = next() || from;
      if (current.depth < zoomed.depth) zoomed = current;
      draw();
    } else if (event.key === 'Enter') {
      zoom(from);
    }
  });
  out.addEventListener('click', () => zoom(view.root));
  search.addEventListener('input', find);
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      if (document.activeElement === search) { search.value = ''; find(); search.blur(); }
      current = null;
      zoom(view.root);
    } else if (event.key === '/' && document.activeElement !== search) {
      event.preventDefault();
      search.focus();
    }
  });
  new ResizeObserver(() => draw()).observe(chart.parentElement);

  // A link can say what to show: #graph=difference&source=perf&search=tcp&zoom=main.(*conn).parse
  const wanted = new URLSearchParams(location.hash.slice(1));
  const bySource = views.filter((v) => !wanted.get('source') || v.source.startsWith(wanted.get('source')));
  show(bySource.find((v) => v.title === wanted.get('graph')) || bySource[0] || views[0]);
  search.value = wanted.get('search') || '';
  find();
  if (wanted.get('zoom')) zoom(named(wanted.get('zoom')) || view.root);
})();
