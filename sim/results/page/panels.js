// Panels of any data, for pages that show something else than one run:
//
//   {"kind": "figures", "title", "figures": [{"name", "text", "small"}]}
//   {"kind": "table", "title", "columns": [{"name", "unit"}], "rows": [[...], ...]}
//   {"kind": "bars", "title", "unit", "parts": ["a", ...], "rows": [{"name", "values": [...]}]}
//   {"kind": "scatter", "title", "x": {"name", "unit", "log"}, "y": ..., "line": bool,
//    "points": [{"x", "y", "name", "group", "marked": bool, "label": beside the mark}]}
//   {"kind": "text", "title", "lines": [...]}
//
// Units: ns, bytes, flops, share, count, number, text (units.js). `line` joins the marked points.
const panels = (() => {
  function figures(into, p) {
    draw.figures(into, p.figures);
  }
  function table(into, p) {
    const columns = p.columns.map((c, i) => ({...c, value: (row) => row[i]}));
    draw.table(into, columns, p.rows, {label: p.title});
  }
  function bars(into, p) {
    const colors = d3.scaleOrdinal(d3.schemeTableau10).domain(p.parts);
    draw.legend(into, p.parts.map((name) => ({name, color: colors(name)})));
    const whole = d3.max(p.rows, (row) => d3.sum(row.values)) || 1;
    draw.table(into, [
      {name: '', value: (row) => row.name},
      {name: 'sum', unit: p.unit, value: (row) => d3.sum(row.values)},
      {name: '', cell: (cell, row) => draw.bar(cell, p.parts.map((name, i) =>
        ({name, value: row.values[i], unit: p.unit, color: colors(name)})), whole)},
    ], p.rows, {label: p.title});
  }
  function scatter(into, p) {
    const margin = {top: 12, right: 20, bottom: 44, left: 84};
    const width = Math.min(draw.width(), 1000), height = 420;
    const svg = into.append('svg').attr('width', width).attr('height', height).attr('role', 'img')
      .attr('aria-label', p.title);
    const extent = (key) => {
      const [low, high] = d3.extent(p.points, (d) => d[key]);
      if (p[key].log) return [low / 1.3, high * 1.3];
      const room = (high - low || Math.abs(high) || 1) * 0.08;
      return [low - room, high + room];
    };
    const scale = (key, range) =>
      (p[key].log ? d3.scaleLog() : d3.scaleLinear()).domain(extent(key)).range(range);
    const x = scale('x', [margin.left, width - margin.right]);
    const y = scale('y', [height - margin.bottom, margin.top]);
    // Bytes are round in powers of 1024.
    const size = (key) => (p[key].unit === 'bytes' && !p[key].log ?
      units.scaleOf(extent(key)[1], 'bytes')[0] : 1);
    const ticks = (make, key) => {
      const [low, high] = extent(key).map((v) => v / size(key));
      if (!p[key].log) make.tickValues(d3.ticks(low, high, 6).map((v) => v * size(key)));
      return make.ticks(6).tickFormat((v) => units.show(v, p[key].unit));
    };
    draw.axis(svg, ticks(d3.axisBottom(x), 'x'), `translate(0,${height - margin.bottom})`);
    draw.axis(svg, ticks(d3.axisLeft(y), 'y'), `translate(${margin.left},0)`);
    svg.append('text').attr('x', width / 2).attr('y', height - 8).attr('text-anchor', 'middle')
      .text(p.x.name);
    svg.append('text').attr('x', 8).attr('y', 10).text(p.y.name);
    const marked = p.points.filter((d) => d.marked).sort((a, b) => d3.ascending(a.x, b.x));
    if (p.line) {
      svg.append('path').datum(marked).attr('fill', 'none').attr('stroke', 'var(--accent)')
        .attr('d', d3.line().x((d) => x(d.x)).y((d) => y(d.y)));
    }
    const onTop = [...p.points].sort((a, b) => Number(!!a.marked) - Number(!!b.marked));
    draw.tips(svg.append('g').selectAll('circle').data(onTop).join('circle')
      .attr('cx', (d) => x(d.x)).attr('cy', (d) => y(d.y)).attr('r', (d) => (d.marked ? 6 : 4))
      .attr('fill', (d) => draw.category(d.group)).attr('stroke', 'var(--ink)')
      .attr('stroke-width', (d) => (d.marked ? 1.5 : 0)).attr('tabindex', 0),
      (d) => `${d.name}\n${p.x.name} ${units.show(d.x, p.x.unit)}, ` +
             `${p.y.name} ${units.show(d.y, p.y.unit)}`);
    svg.append('g').selectAll('text').data(p.points.filter((d) => d.label)).join('text')
      .attr('x', (d) => x(d.x) + (x(d.x) > width / 2 ? -9 : 9)).attr('y', (d) => y(d.y) - 7)
      .attr('text-anchor', (d) => (x(d.x) > width / 2 ? 'end' : 'start')).text((d) => d.label);
    const groups = [...new Set(p.points.map((d) => d.group).filter(Boolean))];
    draw.legend(into, groups.map((name) => ({name, color: draw.category(name)})));
  }
  function text(into, p) {
    into.append('ul').selectAll('li').data(p.lines).join('li').text((line) => line);
  }
  const kinds = {figures, table, bars, scatter, text};
  function show(into, list) {
    for (const p of list) {
      const section = draw.panel(into, p.title, p.note);
      (kinds[p.kind] || ((s) => s.append('p').text(`unknown panel ${p.kind}`)))(section, p);
    }
  }
  return {show};
})();
