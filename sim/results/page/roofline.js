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
    const x = (o) => o.flops / o.hbm_bytes;
    const y = (o) => o.flops / (o.total_ns * 1e-9);
    const peak = r.peak_flops_per_second, rate = r.hbm_bytes_per_second, ridge = peak / rate;
    const margin = {top: 16, right: 20, bottom: 44, left: 92};
    const width = Math.min(draw.width(), 1100), height = 460;
    const svg = section.append('svg').attr('width', width).attr('height', height)
      .attr('role', 'img').attr('aria-label', `roofline of ${ops.length} operations`);
    const domain = ([low, high]) => [low / 3, high * 3];
    const sx = d3.scaleLog().domain(domain(d3.extent([...ops.map(x), ridge])))
      .range([margin.left, width - margin.right]);
    const sy = d3.scaleLog().domain(domain(d3.extent([...ops.map(y), peak])))
      .range([height - margin.bottom, margin.top]);
    draw.axis(svg, d3.axisBottom(sx).ticks(8, '~g'), `translate(0,${height - margin.bottom})`);
    draw.axis(svg, d3.axisLeft(sy).ticks(6).tickFormat((v) => units.show(v, 'flops/s')),
      `translate(${margin.left},0)`);
    svg.append('text').attr('x', width / 2).attr('y', height - 8).attr('text-anchor', 'middle')
      .text('FLOP per byte of HBM');
    const [low, high] = sx.domain();
    const floor = sy.domain()[0];
    const from = Math.max(low, floor / rate);
    svg.append('path').attr('fill', 'none').attr('stroke', 'var(--ink)').attr('stroke-width', 1.5)
      .attr('d', d3.line().x((d) => sx(d[0])).y((d) => sy(d[1]))(
        [[from, from * rate], [ridge, peak], [high, peak]]));
    svg.append('text').attr('x', width - margin.right).attr('y', sy(peak) - 5)
      .attr('text-anchor', 'end').text(`peak ${units.show(peak, 'flops/s')}`);
    svg.append('text').attr('x', sx(from) + 8).attr('y', sy(from * rate) - 8)
      .text(`HBM ${units.show(rate, 'bytes/s')}`);
    const area = d3.scaleSqrt().domain([0, 1]).range([3, 40]);
    draw.tips(svg.append('g').attr('data-marks', 'roofline').selectAll('circle')
      .data(ops.slice().sort((a, b) => d3.descending(a.total_ns, b.total_ns))).join('circle')
      .attr('cx', (o) => sx(x(o))).attr('cy', (o) => sy(y(o)))
      .attr('r', (o) => area(o.total_ns / r.step_time_ns))
      .attr('fill', (o) => draw.category(o.category)).attr('fill-opacity', 0.65)
      .attr('stroke', 'var(--ink)').attr('stroke-opacity', 0.4).attr('tabindex', 0),
      (o) => `${o.name} (${o.category})\n${units.show(y(o), 'flops/s')} at ` +
             `${d3.format('.3~g')(x(o))} FLOP/B\n${units.time(o.total_ns)} of ${o.count}, ` +
             `${units.percent(o.total_ns / r.step_time_ns)} of the step\n${o.source}`);
    draw.legend(section, [...new Set(ops.map((o) => o.category))].map((name) =>
      ({name, color: draw.category(name)})));
  }
  return {show};
})();
