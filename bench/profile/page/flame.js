// What a reader can do with a flame graph beyond looking. The frames are in the page, see graph.go; this shows and
// hides them, and tells what each is. The address keeps what is shown: #flame?view=difference&zoom=main.(*conn).parse
'use strict';
(() => {
  const narrow = 0.8; // pixels: what is narrower is not drawn
  const onePane = matchMedia('(max-width: 79.99em)'); // as in site.css: no room for a frame's code beside it

  const make = (tag, text, className) => {
    const e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    if (className) e.className = className;
    return e;
  };
  const button = (text, act) => {
    const b = make('button', text);
    b.type = 'button';
    b.addEventListener('click', act);
    return b;
  };
  const micro = (ns) => {
    const us = Math.abs(ns) / 1000;
    return (us >= 100 ? us.toFixed(0) : us >= 10 ? us.toFixed(1) : us >= 0.1 ? us.toFixed(2) : us.toFixed(3)) + ' µs';
  };
  const signed = (ns) => (ns < 0 ? '−' : '+') + micro(ns);
  const percent = (share) => (100 * share).toFixed(share < 0.0995 ? 2 : 1) + '%';
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const unique = (list) => [...new Set(list)];

  function grow(element, parent, all) {
    const bar = element.firstElementChild;
    const node = { element, bar, parent, name: bar.title.slice(0, bar.title.lastIndexOf(': ')), values: bar.dataset.v.split(' ').map(Number) };
    node.width = sum(node.values);
    node.children = [...(bar.nextElementSibling?.children || [])].map((child) => grow(child, node, all));
    node.own = node.values.map((v, i) => Math.max(0, v - sum(node.children.map((c) => c.values[i]))));
    bar.node = node;
    all.push(node);
    return node;
  }

  // One graph, with what is zoomed into.
  function graphOf(element) {
    const graph = { element, all: [], chart: element.querySelector('.frames'), ...element.dataset };
    graph.sides = graph.sides ? graph.sides.split(',') : [];
    graph.step = graph.step.split(' ').map(Number);
    graph.root = grow(graph.chart.firstElementChild, null, graph.all);
    graph.zoomed = graph.root;
    graph.path = (node) => (node.parent ? graph.path(node.parent) + ';' : '') + node.name;
    // The widest frame of a name, or the one of a path.
    graph.find = (name) => graph.all.reduce((best, n) => ((n.name === name || graph.path(n) === name) && (!best || n.width > best.width) ? n : best), null);
    graph.zoom = (node) => {
      graph.zoomed = node;
      for (const n of graph.all) n.element.classList.remove('path', 'aside', 'thin');
      for (let n = node; n; n = n.parent) {
        n.element.classList.add('path');
        for (const other of n.parent ? n.parent.children : []) if (other !== n) other.element.classList.add('aside');
      }
      const thin = (n, pixels) => {
        if (pixels < narrow) n.element.classList.add('thin');
        else for (const c of n.children) thin(c, pixels * c.width / n.width);
      };
      thin(node, graph.chart.clientWidth || 1000);
    };
    // A difference counts when it is past what samples scatter: twice the standard error of both counts together.
    graph.change = ([a, b]) => ({ delta: b - a, told: Math.abs(b - a) > 2 * Math.sqrt(a * graph.step[0] + b * graph.step[1]) });
    return graph;
  }

  function start(figure) {
    const graphs = [...figure.querySelectorAll('.graph')].map(graphOf);
    const tools = make('div', undefined, 'tools'), views = make('span'), sources = make('span');
    const out = button('Zoom out', () => zoom(active, active.root));
    const upside = button('Callers below', () => { figure.classList.toggle('up'); draw(); remember(); });
    const search = make('input'), matched = make('output');
    search.type = 'search';
    search.placeholder = 'Search: a regular expression';
    search.setAttribute('aria-label', 'Search functions by a regular expression');
    search.spellcheck = false;
    search.autocomplete = 'off';
    const detail = make('p', undefined, 'detail');
    detail.setAttribute('role', 'status');
    const functions = make('details', undefined, 'functions'), listed = make('summary'), table = make('table');
    const wide = make('div');
    wide.append(table);
    functions.append(listed, wide);
    functions.open = figure.classList.contains('whole');
    tools.append(views, sources, out, upside, search, matched);
    figure.prepend(tools);
    const caption = figure.querySelector('figcaption');
    figure.insertBefore(detail, caption);
    figure.insertBefore(functions, caption);

    let view = graphs[0].view, source = graphs[0].source, active, current = null, term = null;
    const shown = () => graphs.filter((g) => g.view === view && g.source === source);

    function describe(graph, node) {
      let text;
      if (graph.sides.length) {
        const { delta, told } = graph.change(node.values);
        text = `${node.name} — ${graph.sides[0]} ${micro(node.values[0])}, ${graph.sides[1]} ${micro(node.values[1])} per request: ${signed(delta)}` +
          (told ? '' : ', no difference that these samples can tell') + (node.own[0] + node.own[1] > 1 ? `; its own code ${signed(node.own[1] - node.own[0])}` : '');
      } else {
        const total = graph.root.values[0], inside = graph.zoomed.values[0];
        text = `${node.name} — ${percent(node.values[0] / total)} of the whole, ${micro(node.values[0])} per request; its own code ${percent(node.own[0] / total)}, ${micro(node.own[0])}` +
          (graph.zoomed !== graph.root && inside > 0 ? `; ${percent(node.values[0] / inside)} of what is shown` : '');
      }
      detail.textContent = text + (node.bar.href ? ' ' : '');
      if (node.bar.href) {
        const link = make('a', 'its code');
        link.href = node.bar.getAttribute('href');
        detail.append(link);
      }
    }
    const matches = (node) => term !== null && term.test(node.name);

    // What a search finds, without counting a frame twice that lies below another found one.
    function share(graph) {
      let found = 0;
      const walk = (n) => { if (matches(n)) found += n.width; else n.children.forEach(walk); };
      walk(graph.root);
      return found / graph.root.width;
    }

    function draw() {
      for (const g of graphs) g.element.hidden = !shown().includes(g);
      for (const g of shown()) {
        g.zoom(g.zoomed);
        for (const n of g.all) {
          n.bar.classList.toggle('match', matches(n));
          n.bar.classList.toggle('current', n === current);
        }
      }
      out.disabled = shown().every((g) => g.zoomed === g.root);
      upside.setAttribute('aria-pressed', figure.classList.contains('up'));
      matched.textContent = term === null ? '' : shown().map((g) => share(g) === 0 ? 'nothing found' : percent(share(g)) + (g.sides.length ? ' of the two together' : ' of the whole')).join(', ');
      describe(active, current || active.zoomed);
    }

    function list() {
      const byName = new Map();
      const walk = (n, inside) => {
        let f = byName.get(n.name);
        if (!f) byName.set(n.name, f = { name: n.name, className: n.bar.className.split(' ')[0], own: n.values.map(() => 0), all: n.values.map(() => 0) });
        n.own.forEach((v, i) => { f.own[i] += v; });
        if (!inside.has(n.name)) n.values.forEach((v, i) => { f.all[i] += v; });
        const deeper = inside.has(n.name) ? inside : new Set(inside).add(n.name);
        n.children.forEach((c) => walk(c, deeper));
      };
      active.root.children.forEach((c) => walk(c, new Set()));
      table.textContent = '';
      const row = (cells, tag) => {
        const r = make('tr');
        for (const c of cells) r.append(c instanceof Node ? c : make(tag, c));
        table.append(r);
      };
      const named = (f) => {
        const cell = make('td');
        cell.append(make('i', '', f.className), button(f.name, () => {
          search.value = '^' + f.name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '$';
          find();
          figure.scrollIntoView({ block: 'start' });
        }));
        return cell;
      };
      const all = [...byName.values()];
      if (active.sides.length) {
        listed.textContent = 'What changed most in its own code, per request';
        row(['function', ...active.sides, 'difference'], 'th');
        all.map((f) => ({ ...f, ...active.change(f.own) })).filter((f) => f.told).sort((a, b) => Math.abs(b.delta) - Math.abs(a.delta)).slice(0, 30)
          .forEach((f) => row([named(f), micro(f.own[0]), micro(f.own[1]), signed(f.delta)], 'td'));
        return;
      }
      const total = active.root.values[0];
      listed.textContent = `Functions of ${active.name} by the time of their own code`;
      row(['function', 'own, per request', 'own', 'with what it calls'], 'th');
      all.sort((a, b) => b.own[0] - a.own[0]).slice(0, 25)
        .forEach((f) => row([named(f), micro(f.own[0]), percent(f.own[0] / total), percent(f.all[0] / total)], 'td'));
    }

    function choices(place, labels, chosen, choose) {
      place.replaceChildren(...(labels.length < 2 ? [] : labels.map((label) => {
        const b = button(label, () => choose(label));
        b.setAttribute('aria-pressed', label === chosen);
        return b;
      })));
    }
    function show(nextView, nextSource) {
      view = nextView;
      source = nextSource;
      current = null;
      active = shown()[0];
      if (!active) { // one source has no such view
        view = graphs.find((g) => g.source === source).view;
        active = shown()[0];
      }
      choices(views, unique(graphs.filter((g) => g.source === source).map((g) => g.view)), view, (v) => { show(v, source); remember(); });
      choices(sources, unique(graphs.map((g) => g.source)), source, (s) => { show(view, s); remember(); });
      draw();
      list();
    }
    function activate(graph) {
      if (active === graph) return;
      active = graph;
      list();
    }
    function zoom(graph, node) {
      activate(graph);
      graph.zoomed = node;
      draw();
      remember();
    }
    function find() {
      let broken = false;
      try {
        term = search.value.trim() === '' ? null : new RegExp(search.value.trim(), 'i');
      } catch { // half typed
        broken = true;
      }
      search.setAttribute('aria-invalid', broken);
      draw();
    }

    function remember() {
      const wanted = new URLSearchParams();
      if (view !== graphs[0].view) wanted.set('view', view);
      if (source !== graphs[0].source) wanted.set('source', source);
      if (active.zoomed !== active.root) {
        if (shown().length > 1) wanted.set('graph', active.name);
        wanted.set('zoom', active.find(active.zoomed.name) === active.zoomed ? active.zoomed.name : active.path(active.zoomed));
      }
      if (term) wanted.set('search', search.value.trim());
      if (figure.classList.contains('up')) wanted.set('up', '1');
      history.replaceState(history.state, '', '#' + figure.id + (wanted.size ? '?' + wanted : ''));
    }
    function recall() {
      const [id, query] = location.hash.slice(1).split('?');
      if (id !== figure.id || query === undefined) return false;
      const wanted = new URLSearchParams(query);
      const from = graphs.find((g) => g.source.startsWith(wanted.get('source') || graphs[0].source)) || graphs[0];
      figure.classList.toggle('up', wanted.get('up') === '1');
      search.value = wanted.get('search') || '';
      for (const g of graphs) g.zoomed = g.root;
      show((graphs.find((g) => g.view === wanted.get('view') && g.source === from.source) || from).view, from.source);
      active = shown().find((g) => g.name === wanted.get('graph')) || active;
      if (wanted.get('zoom')) active.zoomed = active.find(wanted.get('zoom')) || active.root;
      find();
      list();
      if (!figure.classList.contains('whole')) figure.scrollIntoView({ block: 'start' });
      return true;
    }

    const under = (event) => event.target.closest('.fr > :first-child')?.node;
    for (const graph of graphs) {
      graph.chart.addEventListener('mouseover', (event) => { const n = under(event); if (n) describe(graph, n); });
      graph.chart.addEventListener('mouseleave', () => describe(active, current || active.zoomed));
      graph.chart.addEventListener('click', (event) => {
        const n = under(event);
        if (!n || event.ctrlKey || event.metaKey) return;
        // Beside the graph there is the code; where there is no room, the line below the graph links to it.
        if (onePane.matches) { event.preventDefault(); event.stopPropagation(); }
        current = onePane.matches ? n : null;
        zoom(graph, n);
      });
      graph.chart.addEventListener('keydown', (event) => {
        activate(graph);
        const from = current && graph.all.includes(current) ? current : graph.zoomed;
        const visible = (n) => n && !n.element.classList.contains('thin') && n;
        const siblings = from.parent ? from.parent.children : [from];
        const [below, above] = figure.classList.contains('up') ? ['ArrowUp', 'ArrowDown'] : ['ArrowDown', 'ArrowUp'];
        const next = {
          [below]: () => from.children[0], [above]: () => from.parent,
          ArrowLeft: () => siblings[siblings.indexOf(from) - 1], ArrowRight: () => siblings[siblings.indexOf(from) + 1],
        }[event.key];
        if (next) {
          event.preventDefault();
          current = visible(next()) || from;
          if (current.element.classList.contains('aside')) graph.zoomed = current.parent;
          draw();
        } else if (event.key === 'Enter' && event.target === graph.chart) {
          zoom(graph, from);
        }
      });
    }
    search.addEventListener('input', find);
    search.addEventListener('change', remember);
    (figure.classList.contains('whole') ? document : figure).addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        if (document.activeElement === search) { search.value = ''; search.blur(); find(); }
        current = null;
        zoom(active, active.root);
      } else if (event.key === '/' && document.activeElement !== search) {
        event.preventDefault();
        event.stopPropagation();
        search.focus();
      }
    });
    let width = figure.clientWidth;
    new ResizeObserver(() => {
      if (width === figure.clientWidth) return;
      width = figure.clientWidth;
      draw();
    }).observe(figure);
    addEventListener('hashchange', recall);
    if (!recall()) show(view, source);
  }
  for (const figure of document.querySelectorAll('figure.flame')) start(figure);
})();
