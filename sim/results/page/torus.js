// The chips of the slice and how busy their links are. One plane of x and y at a time.
const torus = (() => {
  // "v5e-4x2", "2x(v5p-4x4x4)", "v4-4x4x8_twisted": slices and extents; null: it says none.
  function shapeOf(config, chips) {
    const extents = /(\d+)x(\d+)(?:x(\d+))?(?:_twisted)?\)?$/.exec(config);
    if (!extents) return null;
    const [x, y, z] = [extents[1], extents[2], extents[3] || 1].map(Number);
    const slices = chips / (x * y * z);
    return Number.isInteger(slices) && slices > 0 ? {x, y, z, slices} : null;
  }
  const turns = {'x+': [1, 0], 'x-': [-1, 0], 'y+': [0, -1], 'y-': [0, 1]};

  function show(into, run) {
    const r = run.report;
    const links = r.links.filter((l) => l.bytes > 0);
    const busiest = d3.max(links, (l) => l.utilization) || 0;
    const wide = draw.columns(into);
    const section = draw.panel(wide, 'Torus',
      links.length ? `Use of the links over the step, against their nominal rate; the busiest ` +
        `reaches ${units.percent(busiest)}.` : 'No link carried anything.');
    const shape = shapeOf(r.config, r.chips);
    const area = section.append('div').attr('class', 'chart');
    const lists = wide.append('div');
    if (shape) {
      const planes = d3.range(shape.slices * shape.z).map((p) => planeName(shape, p));
      const choose = (name) => {
        area.selectAll('*').remove();
        plane(area, r, shape, planes.indexOf(name), busiest);
      };
      if (planes.length > 1) draw.choices(section, 'plane', planes, choose, {key: 'plane'});
      else choose(planes[0]);
      section.append(() => area.node());
    }
    const use = (l) => [{name: 'use', value: l.utilization, color: 'var(--compute)', unit: 'share'}];
    const directions = draw.panel(lists, 'Directions');
    table.show(directions, [
      {name: 'direction', value: (d) => d.key},
      {name: 'links', unit: 'count', value: (d) => d.values.length},
      {name: 'bytes', unit: 'bytes', value: (d) => d3.sum(d.values, (l) => l.bytes)},
      {name: 'mean use', unit: 'share', value: (d) => d3.mean(d.values, (l) => l.utilization)},
      {name: 'busiest', unit: 'share', value: (d) => d3.max(d.values, (l) => l.utilization)},
      {name: '', cell: (cell, d) => draw.bar(cell,
        use({utilization: d3.mean(d.values, (l) => l.utilization)}), 1)},
    ], d3.nest().key((l) => l.direction).entries(r.links), {label: 'directions', key: ''});
    const busy = draw.panel(lists, 'Links', 'The busiest first.');
    table.show(busy, [
      {name: 'chip', unit: 'count', value: (l) => l.chip},
      {name: 'direction', value: (l) => l.direction},
      {name: 'bytes', unit: 'bytes', value: (l) => l.bytes},
      {name: 'use', unit: 'share', value: (l) => l.utilization},
      {name: '', cell: (cell, l) => draw.bar(cell, use(l), 1)},
    ], r.links.slice().sort((a, b) => d3.descending(a.utilization, b.utilization)),
      {label: 'links', most: 16, key: ''});
  }
  const planeName = (shape, p) => [
    shape.slices > 1 ? `slice ${Math.floor(p / shape.z)}` : '', shape.z > 1 ? `z ${p % shape.z}` : '',
  ].filter(Boolean).join(', ');

  function plane(into, r, shape, index, busiest) {
    const perPlane = shape.x * shape.y;
    draw.legend(into, [0, 0.25, 0.5, 0.75, 1].map((share) => ({
      name: units.percent(share * busiest), color: heat({utilization: share * busiest}, busiest)})));
    const cell = Math.min(130, Math.floor(into.node().clientWidth / (shape.x + 0.4)));
    const size = cell * 0.46, margin = cell * 0.7;
    const width = margin * 2 + (shape.x - 1) * cell, height = margin * 2 + (shape.y - 1) * cell;
    const svg = into.append('svg').attr('width', width).attr('height', height).attr('role', 'img')
      .attr('aria-label', 'links of the torus');
    const at = (chip) => {
      const i = chip - index * perPlane;
      return [margin + (i % shape.x) * cell, margin + (shape.y - 1 - Math.floor(i / shape.x)) * cell];
    };
    const hot = (l) => heat(l, busiest);
    const here = r.links.filter((l) => Math.floor(l.chip / perPlane) === index);
    const describe = (l) => `chip ${l.chip} ${l.direction}: ${units.percent(l.utilization)}, ` +
      units.bytes(l.bytes);
    // Each link as an arrow out of its chip, on the right of the way.
    const flat = here.filter((l) => turns[l.direction]);
    draw.tips(svg.append('g').attr('data-marks', 'links').selectAll('line').data(flat).join('line')
      .attr('stroke', hot).attr('stroke-width', Math.max(1.5, cell / 12))
      .each(function(l) {
        const [x, y] = at(l.chip), [dx, dy] = turns[l.direction];
        const side = size * 0.22, reach = cell - size;
        d3.select(this)
          .attr('x1', x + (dx * size) / 2 - dy * side).attr('y1', y + (dy * size) / 2 + dx * side)
          .attr('x2', x + dx * (size / 2 + reach) - dy * side)
          .attr('y2', y + dy * (size / 2 + reach) + dx * side);
      }), describe);
    const chips = d3.range(perPlane).map((i) => i + index * perPlane);
    svg.append('g').selectAll('rect').data(chips).join('rect')
      .attr('x', (c) => at(c)[0] - size / 2).attr('y', (c) => at(c)[1] - size / 2)
      .attr('width', size).attr('height', size).attr('rx', 3)
      .attr('fill', 'var(--panel)').attr('stroke', 'var(--soft)');
    // Numbers only where they can be read.
    svg.append('g').selectAll('text').data(size >= 16 ? chips : []).join('text')
      .attr('x', (c) => at(c)[0]).attr('y', (c) => at(c)[1] + 4).attr('text-anchor', 'middle')
      .style('font-size', `${Math.min(12, Math.max(8, size / 2.4))}px`).text((c) => c);
    // Links to other planes are marks on their chip.
    draw.tips(svg.append('g').selectAll('circle')
      .data(here.filter((l) => l.direction[0] === 'z')).join('circle')
      .attr('cx', (l) => at(l.chip)[0] + (l.direction === 'z+' ? 1 : -1) * size * 0.3)
      .attr('cy', (l) => at(l.chip)[1] - size * 0.32).attr('r', Math.max(2.5, size / 10))
      .attr('fill', hot), describe);
    into.append('p').attr('class', 'note')
      .text('x to the right, y upwards; a link is drawn where it leaves its chip, those at the ' +
            'edge lead to the other end' + (shape.z > 1 ? '; dots are the links along z.' : '.'));
  }
  const heat = (l, busiest) => d3.interpolateRgb(colors.valueOf('var(--cold)'),
    colors.valueOf('var(--hot)'))(busiest ? l.utilization / busiest : 0);
  return {show, shapeOf};
})();
