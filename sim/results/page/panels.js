// Panels of any data, for pages that show something else than one run:
//
//   {"kind": "figures", "title", "figures": [{"name", "text", "small"}]}
//   {"kind": "table", "title", "columns": [{"name", "unit"}], "rows": [[...], ...]}
//   {"kind": "bars", "title", "unit", "parts": ["a", ...], "rows": [{"name", "values": [...]}]}
//   {"kind": "scatter", "title", "x": {"name", "unit", "log"}, "y": ..., "line": bool,
//    "points": [{"x", "y", "name", "group", "marked": bool, "label": beside the mark}]}
//   {"kind": "text", "title", "lines": [...]}
//
// Rows and points open runs of the page: "opens" of a table has the name of a run for each row, or
// null; a row of bars and a point have one each.
//
// Units: ns, bytes, flops, share, count, number, text (units.js). `line` joins the marked points.
const panels = (() => {
  function figures(into, p) {
    draw.figures(into, p.figures);
  }
  function rows(into, p, open) {
    const columns = p.columns.map((c, i) => ({...c, value: (row) => row[i]}));
    const of = new Map(p.rows.map((row, i) => [row, p.opens ? p.opens[i] : null]));
    table.show(into, columns, p.rows, {label: p.title, key: `filter ${p.title}`,
      open: (row) => (of.get(row) ? () => open(of.get(row)) : null)});
  }
  function bars(into, p, open) {
    const known = new Set(p.parts.map((name) => colors.of(name)));
    const place = colors.group(p.parts);
    // Colours of categories and owners where there is one for each.
    const hue = p.unit === 'bytes' ? colors.ofOwner :
      known.size === p.parts.length && !known.has('var(--other)') ? colors.of : place;
    draw.legend(into, p.parts.map((name) => ({name, color: hue(name)})));
    const whole = d3.max(p.rows, (row) => d3.sum(row.values)) || 1;
    table.show(into, [
      {name: '', value: (row) => row.name},
      {name: 'sum', unit: p.unit, value: (row) => d3.sum(row.values)},
      {name: p.unit === 'ns' ? 'time' : 'parts', cell: (cell, row) =>
        draw.bar(cell, p.parts.map((name, i) =>
          ({name, value: row.values[i], unit: p.unit, color: hue(name)})), whole),
       sort: (row) => d3.sum(row.values)},
    ], p.rows, {label: p.title, key: `filter ${p.title}`,
      open: (row) => (row.opens ? () => open(row.opens) : null)});
  }
  function scatter(into, p, open) {
    const groups = [...new Set(p.points.map((d) => d.group).filter(Boolean))];
    const hue = colors.group(groups);
    draw.legend(into, groups.map((name) => ({name, color: hue(name)})));
    const {chart, width, tell} = draw.beside(into, 'Click a mark for details.');
    const margin = {top: 24, right: 14, bottom: 44, left: 84};
    const height = Math.max(300, Math.min(520, width * 0.6));
    const svg = chart.append('svg').attr('width', width).attr('height', height).attr('role', 'group')
      .attr('aria-label', p.title);
    const extent = (key) => {
      const [low, high] = d3.extent(p.points, (d) => d[key]);
      if (p[key].log) return [low / 1.3, high * 1.3];
      const room = (high - low || Math.abs(high) || 1) * 0.08;
      return [low - room, high + room];
    };
    const scale = (key, range) =>
      (!p[key].log ? d3.scaleLinear() : d3.scaleLog().base(p[key].unit === 'bytes' ? 2 : 10))
        .domain(extent(key)).range(range);
    const x = scale('x', [margin.left, width - margin.right]);
    const y = scale('y', [height - margin.bottom, margin.top]);
    // Bytes are round in powers of 1024.
    const size = (key) => (p[key].unit === 'bytes' && !p[key].log ?
      units.scaleOf(extent(key)[1], 'bytes')[0] : 1);
    const ticks = (make, key) => {
      const [low, high] = extent(key).map((v) => v / size(key));
      const room = key === 'x' ? draw.ticksIn(width - margin.left, 100) : 6;
      // Of several decades the powers of ten.
      if (p[key].log && p[key].unit !== 'bytes' && high > 100 * low) {
        make.tickValues(d3.range(Math.ceil(Math.log10(low)), Math.log10(high)).map((i) => 10 ** i));
      }
      if (!p[key].log) make.tickValues(d3.ticks(low, high, room).map((v) => v * size(key)));
      return make.ticks(6).tickFormat((v) => units.short(v, p[key].unit));
    };
    const inner = {x: width - margin.left - margin.right, y: height - margin.top - margin.bottom};
    draw.axis(svg, ticks(d3.axisBottom(x), 'x').tickSizeInner(-inner.y),
      `translate(0,${height - margin.bottom})`);
    draw.axis(svg, ticks(d3.axisLeft(y), 'y').tickSizeInner(-inner.x),
      `translate(${margin.left},0)`);
    svg.append('text').attr('x', width / 2).attr('y', height - 8).attr('text-anchor', 'middle')
      .text(p.x.name);
    svg.append('text').attr('x', 8).attr('y', 10).text(p.y.name);
    const marked = p.points.filter((d) => d.marked).sort((a, b) => d3.ascending(a.x, b.x));
    if (p.line) {
      svg.append('path').datum(marked).attr('fill', 'none').attr('stroke', 'var(--accent)')
        .attr('d', d3.line().x((d) => x(d.x)).y((d) => y(d.y)));
    }
    const onTop = [...p.points].sort((a, b) => Number(!!a.marked) - Number(!!b.marked));
    const marks = draw.tips(svg.append('g').selectAll('circle').data(onTop).join('circle')
      .attr('cx', (d) => x(d.x)).attr('cy', (d) => y(d.y)).attr('r', (d) => (d.marked ? 6 : 4))
      .attr('fill', (d) => hue(d.group)).attr('stroke', 'var(--panel)')
      .attr('stroke-width', (d) => (d.marked ? 1.5 : 0.5)).attr('tabindex', 0),
      (d) => `${d.name}\n${p.x.name} ${units.show(d.x, p.x.unit)}, ` +
             `${p.y.name} ${units.show(d.y, p.y.unit)}`);
    function pick(d) {
      marks.classed('picked', (other) => other === d);
      const detail = tell(d.name, [[p.x.name, units.show(d.x, p.x.unit)],
        [p.y.name, units.show(d.y, p.y.unit)], ['group', d.group], ['why behind', d.why]]);
      if (d.opens) {
        detail.append('button').attr('type', 'button').text('open').on('click', () => open(d.opens));
      }
    }
    marks.on('click', pick).on('keydown', (d) => { if (d3.event.key === 'Enter') pick(d); });
    const labels = svg.append('g').attr('class', 'halo').selectAll('text')
      .data(p.points.filter((d) => d.label)).join('text')
      .attr('x', (d) => x(d.x) + (x(d.x) > width / 2 ? -9 : 9)).attr('y', (d) => y(d.y) - 7)
      .attr('text-anchor', (d) => (x(d.x) > width / 2 ? 'end' : 'start')).text((d) => d.label);
    draw.clear(labels, svg);
  }
  function text(into, p) {
    into.append('ul').selectAll('li').data(p.lines).join('li').text((line) => line);
  }
  const kinds = {figures, table: rows, bars, scatter, text};
  // `open` shows the run of that name.
  function show(into, list, open) {
    for (const p of list) {
      const section = draw.panel(into, p.title, p.note);
      (kinds[p.kind] || ((s) => s.append('p').text(`unknown panel ${p.kind}`)))(section, p, open);
    }
  }
  return {show};
})();
