// What one device did over the step: a row per track, all over one axis of time that can be zoomed.
// Slices too narrow to be seen are drawn as one, so that any number is quick.
const timeline = (() => {
  const left = 130, bandHeight = 17, counterHeight = 46, mostDepth = 12;
  const notShown = new Set(['Steps']);

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

  function rowsOf(data) {
    let y = 26;
    const shown = (t) => !notShown.has(t.name) && !t.name.startsWith('Live HBM: ');
    return data.tracks.filter(shown).map((t) => {
      const row = {name: t.name, y, unit: t.unit};
      if (t.samples) {
        row.samples = samplesOf(t, data.end_ns);
        row.height = counterHeight;
      } else {
        const slices = slicesOf(t, data);
        row.byDepth = d3.nest().key((s) => s.depth).entries(slices)
          .filter((e) => Number(e.key) < mostDepth).map((e) => e.values);
        row.height = bandHeight * Math.max(row.byDepth.length, 1);
      }
      y += row.height + 7;
      return row;
    });
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

  function show(into, run) {
    const data = run.timeline;
    if (!data) {
      draw.panel(into, 'Timeline').append('p').text('There is none of this run.');
      return;
    }
    const section = draw.panel(into, `Timeline of ${data.device}`,
      'Turn the wheel or press + and - to zoom, drag or press the arrow keys to move; a click ' +
      'keeps what a slice is.' + (data.left_out ?
        ` ${units.count(data.left_out)} short slices are not in this page; the trace has all.` : ''));
    const rows = rowsOf(data);
    const width = draw.width();
    const height = d3.max(rows, (r) => r.y + r.height) + 10;
    const bar = section.append('div').attr('class', 'choices');
    const svg = section.append('svg').attr('width', width).attr('height', height)
      .attr('tabindex', 0).attr('role', 'group')
      .attr('aria-label', `timeline of ${data.device}`);
    svg.append('clipPath').attr('id', 'inside').append('rect').attr('x', left)
      .attr('width', width - left).attr('height', height);
    const full = d3.scaleLinear().domain([0, data.end_ns]).range([left, width - 8]);
    const axis = svg.append('g').attr('class', 'axis').attr('transform', 'translate(0,20)');
    svg.append('g').selectAll('text').data(rows).join('text').attr('x', 0)
      .attr('y', (r) => r.y + 12).text((r) => r.name);
    const marks = svg.append('g').attr('clip-path', 'url(#inside)').selectAll('g').data(rows)
      .join('g').attr('data-track', (r) => r.name);
    const detail = section.append('p').attr('class', 'note').attr('id', 'selected')
      .attr('aria-live', 'polite').style('white-space', 'pre-line');

    function redraw(x) {
      const [from, to] = x.domain();
      const [unit, name] = units.scaleOf(to, 'time');
      axis.call(d3.axisTop(x).ticks(8).tickFormat((v) => `${d3.format('~g')(+(v / unit).toPrecision(7))} ${name}`));
      svg.attr('data-from', Math.round(from)).attr('data-to', Math.round(to));
      marks.each(function(row) {
        const group = d3.select(this);
        if (row.samples) counter(group, row, x);
        else slices(group, row, x);
      });
    }
    function slices(group, row, x) {
      const bands = group.selectAll('g').data(row.byDepth).join('g');
      bands.each(function(all, depth) {
        const seen = visible(all, x);
        const band = d3.select(this).attr('transform',
          `translate(0,${row.y + depth * bandHeight})`);
        const rects = band.selectAll('rect').data(seen).join('rect')
          .attr('x', (d) => d.a).attr('width', (d) => Math.max(d.b - d.a, 0.6))
          .attr('height', bandHeight - 1.5)
          .attr('fill', (d) => (d.slice.op ? draw.category(d.slice.op.category) : 'var(--rest)'))
          .attr('fill-opacity', (d) => (d.count > 1 ? 0.55 : 0.9))
          .on('click', (d) => detail.text(describe(d)));
        draw.tips(rects, describe);
        const room = seen.filter((d) => d.count === 1 && d.b - d.a > 34);
        band.selectAll('text').data(room).join('text').attr('x', (d) => d.a + 3).attr('y', 12)
          .attr('pointer-events', 'none')
          .text((d) => d.slice.name.slice(0, Math.floor((d.b - d.a - 6) / 6.6)));
      });
    }
    function counter(group, row, x) {
      const largest = d3.max(row.samples, (s) => s.value) || 1;
      const y = d3.scaleLinear().domain([0, largest]).range([row.y + row.height, row.y]);
      const text = row.unit === 'B' ? units.bytes(largest) : `${d3.format('.4~g')(largest)} ${row.unit}`;
      group.selectAll('path').data([row.samples]).join('path')
        .attr('fill', 'var(--compute)').attr('fill-opacity', 0.4).attr('stroke', 'var(--compute)')
        .attr('d', d3.area().curve(d3.curveStepAfter).x((s) => x(s.time)).y0(y(0))
          .y1((s) => y(s.value)));
      group.selectAll('text').data([text]).join('text').attr('class', 'soft').attr('x', width - 12)
        .attr('y', row.y + 10).attr('text-anchor', 'end').text((t) => `up to ${t}`);
    }

    const zoom = d3.zoom().scaleExtent([1, Math.max(data.end_ns / 10, 1)])
      .translateExtent([[left, 0], [width - 8, height]]).extent([[left, 0], [width - 8, height]])
      .on('zoom', () => redraw(d3.event.transform.rescaleX(full)));
    svg.call(zoom);
    const by = (factor) => svg.call(zoom.scaleBy, factor);
    const move = (share) => svg.call(zoom.translateBy,
      (share * (width - left)) / d3.zoomTransform(svg.node()).k, 0);
    const buttons = [['zoom in', () => by(2)], ['zoom out', () => by(0.5)],
                     ['whole step', () => svg.call(zoom.transform, d3.zoomIdentity)]];
    bar.selectAll('button').data(buttons).join('button').attr('type', 'button').text((b) => b[0])
      .on('click', (b) => b[1]());
    const keys = {'+': () => by(2), '-': () => by(0.5), 'ArrowLeft': () => move(0.2),
                  'ArrowRight': () => move(-0.2)};
    svg.on('keydown', () => {
      const act = keys[d3.event.key];
      if (!act) return;
      d3.event.preventDefault();
      act();
    });
    redraw(full);
    const categories = [...new Set(data.ops.map((o) =>
      o.category.replace(/-(start|done)$/, '')).filter(Boolean))];
    draw.legend(section, categories.map((name) => ({name, color: draw.category(name)})));
  }
  return {show};
})();
