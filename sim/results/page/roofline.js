// FLOP/s of every operation over its FLOP per byte of HBM, below what the chip can do.
const roofline = (() => {
  const containers = new Set(['while', 'conditional', 'call']);
  function show(into, run) {
    const r = run.report;
    const ops = r.ops.filter((o) => o.flops > 0 && o.hbm_bytes > 0 && o.total_ns > 0 &&
      !containers.has(o.category));
    const section = draw.panel(into, 'Roofline',
      'A circle per operation, as large as its share of the step, below the nominal rates of one ' +
      'device. The flat ceiling is the published bf16 peak.');
    if (!ops.length) {
      section.append('p').text('No operation has both FLOPs and bytes of HBM.');
      return;
    }
    draw.legend(section, colors.key(ops.map((o) => o.category)));
    const {chart, width, tell, more} = draw.beside(section, 'Click a circle for details.');
    const x = (o) => o.flops / o.hbm_bytes;
    const y = (o) => o.flops / (o.total_ns * 1e-9);
    const peak = r.peak_flops_per_second, rate = r.hbm_bytes_per_second, ridge = peak / rate;
    const margin = {top: 18, right: 12, bottom: 42, left: 84};
    const height = Math.max(300, Math.min(560, width * 0.6));
    const svg = chart.append('svg').attr('width', width).attr('height', height)
      .attr('role', 'group').attr('aria-label', `roofline of ${ops.length} operations`);
    const domain = ([low, high]) => [low / 3, high * 3];
    const sx = d3.scaleLog().domain(domain(d3.extent([...ops.map(x), ridge])))
      .range([margin.left, width - margin.right]);
    const sy = d3.scaleLog().domain(domain(d3.extent([...ops.map(y), peak])))
      .range([height - margin.bottom, margin.top]);
    const powers = (scale) => d3.range(Math.ceil(Math.log10(scale.domain()[0])),
      Math.floor(Math.log10(scale.domain()[1])) + 1).map((i) => Number(`1e${i}`));
    const grid = svg.append('g').attr('class', 'grid');
    grid.selectAll('line.x').data(powers(sx)).join('line').attr('x1', sx).attr('x2', sx)
      .attr('y1', margin.top).attr('y2', height - margin.bottom);
    grid.selectAll('line.y').data(powers(sy)).join('line').attr('y1', sy).attr('y2', sy)
      .attr('x1', margin.left).attr('x2', width - margin.right);
    const tickText = (v) => (v < 1e4 && v > 1e-4 ? d3.format('~g')(v) : d3.format('.0e')(v));
    draw.axis(svg, d3.axisBottom(sx).tickValues(powers(sx)).tickFormat(tickText),
      `translate(0,${height - margin.bottom})`);
    draw.axis(svg, d3.axisLeft(sy).tickValues(powers(sy))
      .tickFormat((v) => units.short(v, 'flops/s')), `translate(${margin.left},0)`);
    svg.append('text').attr('x', (margin.left + width) / 2).attr('y', height - 8)
      .attr('text-anchor', 'middle').text('FLOP per byte of HBM');
    const [low, high] = sx.domain();
    const floor = sy.domain()[0];
    const from = Math.max(low, floor / rate);
    svg.append('path').attr('fill', 'none').attr('stroke', 'var(--ink)').attr('stroke-width', 1.5)
      .attr('d', d3.line().x((d) => sx(d[0])).y((d) => sy(d[1]))(
        [[from, from * rate], [ridge, peak], [high, peak]]));
    const area = d3.scaleSqrt().domain([0, 1]).range([3, Math.min(40, width / 14)]);
    const longest = ops.slice().sort((a, b) => d3.descending(a.total_ns, b.total_ns));
    const marks = draw.tips(svg.append('g').attr('data-marks', 'roofline').selectAll('circle')
      .data(longest).join('circle')
      .attr('cx', (o) => sx(x(o))).attr('cy', (o) => sy(y(o)))
      .attr('r', (o) => area(o.total_ns / r.step_time_ns))
      .attr('fill', (o) => colors.of(o.category)).attr('fill-opacity', 0.7)
      .attr('stroke', 'var(--panel)').attr('tabindex', 0),
      (o) => `${o.name} (${o.category})\n${units.show(y(o), 'flops/s')} at ` +
             `${d3.format('.3~g')(x(o))} FLOP/B\n${units.time(o.total_ns)} of ${o.count}, ` +
             `${units.percent(o.total_ns / r.step_time_ns)} of the step\n${o.source}`);
    function pick(o) {
      address.set({op: o.name});
      marks.classed('picked', (other) => other === o);
      const roof = Math.min(peak, x(o) * rate);
      tell(o.name, [
        ['category', o.category], ['time', `${units.time(o.total_ns)} in ${units.count(o.count)}`],
        ['step', units.percent(o.total_ns / r.step_time_ns)],
        ['rate', units.show(y(o), 'flops/s')], ['of its roof', units.percent(y(o) / roof)],
        ['intensity', `${d3.format('.3~g')(x(o))} FLOP/B`],
        ['bound by', x(o) < ridge ? 'HBM' : 'compute'],
        ['FLOPs', units.flops(o.flops)], ['HBM bytes', units.bytes(o.hbm_bytes)],
        ['compiled', names.decisions(r, [o.name])], ['source', o.source], ['scope', o.scope],
      ]);
    }
    more.append('h3').text('Longest operations and their share of the roof');
    table.show(more, [
      {name: 'operation', value: (o) => o.name, color: (o) => colors.of(o.category), widest: 14},
      {name: 'step', unit: 'share', value: (o) => o.total_ns / r.step_time_ns},
      {name: 'of roof', unit: 'share', value: (o) => y(o) / Math.min(peak, x(o) * rate)},
    ], longest.slice(0, 10), {label: 'longest operations', key: '', open: (o) => () => pick(o)});
    const on = () => longest.find((o) => o.name === address.get('op'));
    marks.on('click', pick).on('keydown', (o) => { if (d3.event.key === 'Enter') pick(o); });
    if (on()) pick(on());
    // The roof first: labels of operations give way to it.
    const over = svg.append('g').attr('pointer-events', 'none').attr('class', 'halo');
    const labels = over.selectAll('text').data([
      {x: width - margin.right, y: sy(peak) - 6, end: true,
       text: `peak ${units.show(peak, 'flops/s')}`},
      {x: sx(from) + 34, y: sy(from * rate) + 4, text: `HBM ${units.show(rate, 'bytes/s')}`},
      ...longest.slice(0, 8).map((o) => {
        const end = sx(x(o)) > width * 0.6, r0 = area(o.total_ns / r.step_time_ns) + 3;
        return {x: sx(x(o)) + (end ? -r0 : r0), y: sy(y(o)) + 4, end, text: o.name};
      }),
    ]).join('text').attr('x', (d) => d.x).attr('y', (d) => d.y)
      .attr('text-anchor', (d) => (d.end ? 'end' : 'start')).text((d) => d.text);
    draw.clear(labels, svg);
  }
  return {show};
})();
