// What one device did over the step: a row per track, all over one axis of time that can be zoomed.
// Slices too narrow to be seen are drawn as one, so that any number is quick.
const timeline = (() => {
  const bandHeight = 18, counterHeight = 44, mostDepth = 12, captionHeight = 15, top = 26;
  // The step itself is the axis.
  const notShown = new Set(['Steps', 'XLA Modules']);
  // Tracks that are busy for less of the step are folded.
  const leastBusy = 1e-3;

  // {start, end, name, op, depth}, of the flat array; slices nest or follow each other.
  function slicesOf(track, data) {
    const open = [];
    const slices = [];
    for (let i = 0; i < track.slices.length; i += 4) {
      const start = track.slices[i], end = start + track.slices[i + 1];
      while (open.length && open[open.length - 1] <= start) open.pop();
      slices.push({start, end, name: data.names[track.slices[i + 2]],
                   op: data.ops[track.slices[i + 3]] || null, depth: open.length, track: track.name});
      open.push(end);
    }
    return slices;
  }
  function samplesOf(track, end) {
    const samples = [];
    for (let i = 0; i < track.samples.length; i += 2) {
      samples.push({time: track.samples[i], value: track.samples[i + 1]});
    }
    if (samples.length) samples.push({time: end, value: samples[samples.length - 1].value});
    return samples;
  }
  function isIdle(row, data) {
    if (row.samples) return !row.samples.some((s) => s.value > 0);
    const busy = d3.sum(row.byDepth[0] || [], (s) => s.end - s.start);
    return busy < leastBusy * data.end_ns;
  }

  function rowsOf(data) {
    const shown = (t) => !notShown.has(t.name) && !t.name.startsWith('Live HBM: ');
    const rows = data.tracks.filter(shown).map((t) => {
      const row = {name: t.name, unit: t.unit};
      if (t.samples) {
        row.samples = samplesOf(t, data.end_ns);
      } else {
        row.byDepth = d3.nest().key((s) => s.depth).entries(slicesOf(t, data))
          .filter((e) => Number(e.key) < mostDepth).map((e) => e.values);
      }
      return row;
    });
    for (const row of rows) row.idle = isIdle(row, data);
    return rows;
  }
  // Names above their rows leave the width to those, where there is little.
  function place(rows, above) {
    let y = top;
    for (const row of rows) {
      if (above) y += captionHeight;
      row.y = y;
      row.height = row.samples ? counterHeight :
        bandHeight * Math.max(row.folded ? 1 : row.byDepth.length, 1);
      y += row.height + 8;
    }
    return y;
  }

  // Those that are seen, neighbours narrower than a pixel together.
  function visible(slices, x) {
    const [from, to] = x.domain();
    const out = [];
    let i = Math.max(d3.bisector((s) => s.end).left(slices, from), 0);
    for (; i < slices.length && slices[i].start <= to; ++i) {
      const s = slices[i];
      const a = x(Math.max(s.start, from)), b = x(Math.min(s.end, to));
      const last = out[out.length - 1];
      if (b - a < 1 && last && last.narrow && a - last.b < 1) {
        last.b = Math.max(last.b, b);
        ++last.count;
        continue;
      }
      out.push({slice: s, a, b, narrow: b - a < 1, count: 1});
    }
    return out;
  }

  function describe(d) {
    const s = d.slice;
    if (d.count > 1) return `${d.count} of ${s.track}, too short to be seen apart: zoom in`;
    const lines = [s.name, `${units.time(s.end - s.start)} from ${units.time(s.start)} on`];
    if (s.op) {
      lines.push(s.op.category, s.op.scope, s.op.source);
    }
    return lines.filter(Boolean).join('\n');
  }

  // Shows the details of a clicked slice beside the chart.
  function tellOf(d, run) {
    const s = d.slice, o = s.op || {};
    if (d.count > 1) {
      return [`${units.count(d.count)} slices`, [['track', s.track]],
              ['They are too short to be seen apart: zoom in.']];
    }
    const plain = colors.plain(s.name);
    const of = run.report.collectives.find((c) => c.name === plain || c.name === s.name);
    const reasons = of ? of.exposed_by.map((e) =>
      `${e.reason} ${units.time(e.exposed_ns)}${e.text ? `: ${e.text}` : ''}`).join('; ') : '';
    return [s.name, [
      ['track', s.track], ['category', o.category], ['takes', units.time(s.end - s.start)],
      ['step', units.percent((s.end - s.start) / run.report.step_time_ns)],
      ['starts at', units.time(s.start)], ['shape', o.shape],
      ['FLOPs', o.flops ? units.flops(o.flops) : ''],
      ['HBM bytes', o.hbm_bytes ? units.bytes(o.hbm_bytes) : ''],
      ['algorithm', of ? of.algorithm : ''],
      ['bytes', of ? units.bytes(of.bytes) : ''],
      ['bound', of ? units.time(of.bound_ns) : ''],
      ['exposed', of && of.total_ns ? units.percent(of.exposed_ns / of.total_ns) : ''],
      ['because', reasons], ['compiled', names.decisions(run.report, [s.name, plain])],
      ['scope', o.scope], ['source', o.source],
    ], []];
  }

  function show(into, run) {
    const data = run.timeline;
    if (!data) {
      draw.panel(into, 'Timeline').append('p').text('This run has no timeline.');
      return;
    }
    const section = draw.panel(into, `Timeline of ${data.device}`,
      'Turn the wheel or press + and - to zoom, drag or press the arrow keys to move; click a ' +
      'slice for details, or the name of a track to fold it.' + (data.left_out ?
        ` ${units.count(data.left_out)} short slices are not in this page; the trace has all.` : ''));
    const all = rowsOf(data);
    const categories = colors.key(data.ops.map((o) => o.category));
    const bar = section.append('div').attr('class', 'choices');
    draw.legend(section, categories);
    const {chart, width, tell, more} = draw.beside(section, 'Click a slice for details.');
    const state = {all, data, run, chart, width, tell, more, bar, folded: new Set(), everything: false,
                   selected: address.get('slice')};
    // Where the step is seen, after folding and from one visit to the next.
    state.view = [Number(address.get('from', 0)), Number(address.get('to', data.end_ns))];
    if (!(state.view[0] < state.view[1])) state.view = [0, data.end_ns];
    drawn(state);
  }

  function largestOf(row) {
    const largest = d3.max(row.samples, (s) => s.value) || 0;
    return row.unit === 'B' ? units.bytes(largest) : `${d3.format('.4~g')(largest)} ${row.unit}`;
  }

  // What the main stream does in a part of the step, by category: [{name, value}], most first. An
  // operation's own time is that without those inside of it.
  function inView(rows, [from, to]) {
    const main = rows.find((r) => r.name === 'TensorCore');
    const sums = new Map();
    const add = (s, sign) => {
      const time = Math.min(s.end, to) - Math.max(s.start, from);
      if (time <= 0) return;
      const name = s.op && s.op.category ? colors.plain(s.op.category) : 'other';
      sums.set(name, (sums.get(name) || 0) + sign * time);
    };
    if (!main) return [];
    main.byDepth.forEach((list, depth) => {
      const outer = depth ? main.byDepth[depth - 1] : [];
      let o = 0;
      for (const s of list) {
        add(s, 1);
        while (o < outer.length && outer[o].end <= s.start) ++o;
        if (o < outer.length) add({...s, op: outer[o].op}, -1);
      }
    });
    return [...sums].map(([name, value]) => ({name, value}))
      .filter((e) => e.value > 0).sort((a, b) => d3.descending(a.value, b.value));
  }
  function tellView(state) {
    const [from, to] = state.view;
    const list = inView(state.all, state.view);
    state.more.selectAll('*').remove();
    if (!list.length) return;
    state.more.append('h3').text(`TensorCore from ${units.time(Math.round(from))} ` +
      `to ${units.time(Math.round(to))}`);
    table.show(state.more, [
      {name: 'category', value: (e) => e.name, color: (e) => colors.of(e.name), widest: 15},
      {name: 'time', unit: 'ns', value: (e) => e.value},
      {name: 'share', unit: 'share', value: (e) => e.value / (to - from)},
    ], list, {label: 'what is seen', key: ''});
  }

  const idOf = (s) => `${s.track}@${s.start}@${s.name}`;

  function drawn(state) {
    const {all, data, run, chart, width, tell} = state;
    const idle = all.filter((r) => r.idle);
    const rows = all.filter((r) => state.everything || !r.idle);
    for (const row of rows) row.folded = state.folded.has(row.name);
    const above = width < 640;
    const left = above ? 0 : 132;
    const height = place(rows, above) + 4;
    chart.selectAll('*').remove();
    const svg = chart.append('svg').attr('width', width).attr('height', height)
      .attr('tabindex', 0).attr('role', 'group')
      .attr('aria-label', `timeline of ${data.device}`);
    svg.append('clipPath').attr('id', 'inside').append('rect').attr('x', left)
      .attr('width', Math.max(width - left, 0)).attr('height', height);
    const full = d3.scaleLinear().domain([0, data.end_ns]).range([left, width - 2]);
    const axis = svg.append('g').attr('class', 'axis').attr('transform', 'translate(0,20)');
    const grid = svg.append('g').attr('class', 'grid');
    const canFold = (r) => !r.samples && r.byDepth.length > 1;
    svg.append('g').attr('data-marks', 'tracks').selectAll('text').data(rows).join('text')
      .attr('x', 0).attr('y', (r) => r.y + (above ? -4 : 13)).attr('class', 'track')
      .classed('folds', canFold)
      .text((r) => `${canFold(r) ? (r.folded ? '▸ ' : '▾ ') : ''}${r.name}`)
      .each(function(r) {
        if (!r.samples) return;
        const line = d3.select(this).append('tspan').attr('class', 'soft').text(`up to ${largestOf(r)}`);
        if (above) line.attr('dx', 8);
        else line.attr('x', 0).attr('dy', 15);
      })
      .filter(canFold).attr('tabindex', 0).attr('role', 'button')
      .attr('aria-expanded', (r) => String(!r.folded))
      .on('click', fold).on('keydown', (r) => { if (d3.event.key === 'Enter') fold(r); });
    function fold(row) {
      if (!state.folded.delete(row.name)) state.folded.add(row.name);
      drawn(state);
    }
    const marks = svg.append('g').attr('clip-path', 'url(#inside)').selectAll('g').data(rows)
      .join('g').attr('data-track', (r) => r.name);

    function redraw(x) {
      const [from, to] = x.domain();
      state.view = [from, to];
      const [unit, name] = units.scaleOf(to, 'time');
      const ticks = x.ticks(draw.ticksIn(width - left, 100));
      axis.call(d3.axisTop(x).tickValues(ticks)
        .tickFormat((v) => `${d3.format('~g')(+(v / unit).toPrecision(7))} ${name}`));
      draw.tidy(axis, svg);
      grid.selectAll('line').data(ticks).join('line').attr('x1', x).attr('x2', x)
        .attr('y1', 20).attr('y2', height);
      svg.attr('data-from', Math.round(from)).attr('data-to', Math.round(to));
      marks.each(function(row) {
        const group = d3.select(this);
        if (row.samples) counter(group, row, x);
        else slices(group, row, x);
      });
    }
    function slices(group, row, x) {
      const bands = group.selectAll('g').data(row.folded ? row.byDepth.slice(0, 1) : row.byDepth)
        .join('g');
      bands.each(function(list, depth) {
        const seen = visible(list, x);
        const band = d3.select(this).attr('transform',
          `translate(0,${row.y + depth * bandHeight})`);
        const fill = (d) => (d.slice.op ? colors.of(d.slice.op.category) :
          row.name === 'Scopes' ? 'var(--scope)' : 'var(--rest)');
        const rects = band.selectAll('rect').data(seen).join('rect')
          .attr('x', (d) => d.a).attr('width', (d) => Math.max(d.b - d.a - 0.5, 0.6))
          .attr('height', bandHeight - 1.5).attr('rx', (d) => (d.b - d.a > 6 ? 2 : 0))
          .attr('fill', fill)
          .attr('fill-opacity', (d) => (d.count > 1 ? 0.6 : 1))
          .classed('picked', (d) => d.count === 1 && idOf(d.slice) === state.selected)
          .on('click', pick);
        draw.tips(rects, describe);
        const room = seen.filter((d) => d.count === 1 && d.b - d.a > 34);
        band.selectAll('text').data(room).join('text').attr('x', (d) => d.a + 4).attr('y', 12.5)
          .attr('pointer-events', 'none').style('fill', (d) => colors.ink(fill(d)))
          .text((d) => shortened(d.slice.name, d.b - d.a - 8));
      });
    }
    function pick(d) {
      state.selected = d.count === 1 ? idOf(d.slice) : '';
      address.set({slice: state.selected});
      tell(...tellOf(d, run));
      marks.selectAll('rect').classed('picked', (o) =>
        o.count === 1 && idOf(o.slice) === state.selected);
    }
    function counter(group, row, x) {
      const largest = d3.max(row.samples, (s) => s.value) || 1;
      const y = d3.scaleLinear().domain([0, largest]).range([row.y + row.height, row.y]);
      group.selectAll('path').data([row.samples]).join('path')
        .attr('fill', 'var(--counter)').attr('stroke', 'var(--counter)').attr('fill-opacity', 0.35)
        .attr('d', d3.area().curve(d3.curveStepAfter).x((s) => x(s.time)).y0(y(0))
          .y1((s) => y(s.value)));
      group.select('title').remove();
      group.append('title').text(`up to ${largestOf(row)}`);
    }

    const zoom = d3.zoom().scaleExtent([1, Math.max(data.end_ns / 10, 1)])
      .translateExtent([[left, 0], [width - 2, height]]).extent([[left, 0], [width - 2, height]])
      .on('zoom', () => redraw(d3.event.transform.rescaleX(full)))
      .on('end', () => {
        const [from, to] = state.view;
        const whole = from <= 0 && to >= data.end_ns;
        tellView(state);
        address.set({from: whole ? '' : Math.round(from), to: whole ? '' : Math.round(to)});
      });
    svg.call(zoom);
    const [from, to] = state.view;
    redraw(full);
    tellView(state);
    if (from > 0 || to < data.end_ns) {
      const k = data.end_ns / (to - from);
      svg.call(zoom.transform, d3.zoomIdentity.translate(left - k * full(from), 0).scale(k));
    }
    const by = (factor) => svg.call(zoom.scaleBy, factor);
    const move = (share) => svg.call(zoom.translateBy,
      (share * (width - left)) / d3.zoomTransform(svg.node()).k, 0);
    const buttons = [['zoom in', () => by(2)], ['zoom out', () => by(0.5)],
                     ['whole step', () => svg.call(zoom.transform, d3.zoomIdentity)]];
    if (idle.length) {
      const what = idle.length === 1 ? 'track' : 'tracks';
      buttons.push([`${state.everything ? 'fold' : 'show'} ${idle.length} idle ${what}`, () => {
        state.everything = !state.everything;
        drawn(state);
      }]);
    }
    state.bar.selectAll('button').data(buttons).join('button').attr('type', 'button')
      .text((b) => b[0]).on('click', (b) => b[1]())
      .attr('title', (b, i) => (i === 3 ? idle.map((r) => r.name).join(', ') : null));
    const keys = {'+': () => by(2), '-': () => by(0.5), 'ArrowLeft': () => move(0.2),
                  'ArrowRight': () => move(-0.2), 'w': () => by(2), 's': () => by(0.5),
                  'a': () => move(0.2), 'd': () => move(-0.2)};
    svg.on('keydown', () => {
      const act = keys[d3.event.key];
      if (!act || d3.event.ctrlKey || d3.event.metaKey) return;
      d3.event.preventDefault();
      act();
    });
    const kept = state.selected && rows.flatMap((r) => (r.byDepth || []).flat())
      .find((s) => idOf(s) === state.selected);
    if (kept) tell(...tellOf({slice: kept, count: 1}, run));
  }

  // As much of a name as fits into so many pixels.
  function shortened(name, pixels) {
    const letters = Math.floor(pixels / 6.7);
    return name.length <= letters ? name : letters < 3 ? '' : `${name.slice(0, letters - 1)}…`;
  }
  return {show};
})();
