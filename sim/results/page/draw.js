// What all views share: panels, tooltips, keys, choices, bars, axes, details beside a chart.
const draw = (() => {
  const tip = () => d3.select('#tip');
  // `text` is of the datum; also for those who cannot point: every mark has a label.
  function tips(marks, text) {
    marks
      .attr('aria-label', text)
      .on('mousemove.tip', function(d) {
        const event = d3.event;
        const node = tip().attr('hidden', null).text(text(d)).node();
        const x = Math.min(event.clientX + 14, innerWidth - node.offsetWidth - 8);
        const y = Math.min(event.clientY + 14, innerHeight - node.offsetHeight - 8);
        tip().style('left', `${Math.max(x, 4)}px`).style('top', `${Math.max(y, 4)}px`);
      })
      .on('mouseleave.tip', () => tip().attr('hidden', true));
    return marks;
  }

  // `more` is the tab that tells more.
  function panel(into, title, note, more) {
    const section = into.append('section').attr('class', 'panel').attr('aria-label', title);
    const head = section.append('h2').text(title);
    if (more) {
      head.append('button').attr('type', 'button').attr('class', 'link').attr('data-tab', more)
        .text(more).on('click', () => {
          address.go({tab: more});
          dispatchEvent(new PopStateEvent('popstate'));
        });
    }
    if (note) section.append('p').attr('class', 'note').text(note);
    return section;
  }

  // Panels beside each other where there is room.
  const columns = (into) => into.append('div').attr('class', 'columns');

  function legend(into, entries) {
    const items = into.append('ul').attr('class', 'legend').selectAll('li').data(entries).join('li');
    items.append('i').style('background', (e) => e.color);
    items.append('span').text((e) => e.name);
  }

  // Buttons of which one is pressed, a list if there are many; calls `choose` with its name now
  // and then. The address keeps which it is under `key`.
  function choices(into, label, names, choose, {key = '', first = names[0], most = 12} = {}) {
    const group = into.append('div').attr('class', 'choices').attr('role', 'group')
      .attr('aria-label', label);
    group.append('span').text(label);
    const kept = key && address.get(key);
    const start = names.includes(kept) ? kept : first;
    let mark;
    function press(name) {
      mark(name);
      if (key) address.set({[key]: name === first ? '' : name});
      choose(name);
    }
    if (names.length > most) {
      const list = group.append('select').attr('aria-label', label)
        .on('change', function() { press(names[this.selectedIndex]); });
      list.selectAll('option').data(names).join('option').text((n) => n);
      mark = (name) => list.property('selectedIndex', names.indexOf(name));
    } else {
      const buttons = group.selectAll('button').data(names).join('button').attr('type', 'button')
        .text((n) => n).on('click', press);
      mark = (name) => buttons.attr('aria-pressed', (n) => String(n === name));
    }
    press(start);
    return group;
  }

  // A bar of parts [{name, value, color, unit}], as long as its share of `whole`.
  function bar(into, parts, whole, wide) {
    const box = into.append('span').attr('class', wide ? 'bar wide' : 'bar').attr('role', 'img')
      .attr('aria-label', parts.map((p) => `${p.name} ${units.show(p.value, p.unit)}`).join(', '));
    tips(box.selectAll('span').data(parts.filter((p) => p.value > 0)).join('span')
      .style('width', (p) => `${(100 * p.value) / whole}%`)
      .style('background', (p) => p.color),
      (p) => `${p.name}: ${units.show(p.value, p.unit)} (${units.percent(p.value / whole)})`);
    return box;
  }

  // A bar that goes to the right of the middle for more, to the left for less.
  function difference(into, value, largest, unit) {
    const box = into.append('span').attr('class', 'bar both').attr('role', 'img')
      .attr('aria-label', units.signed(value, unit));
    const share = largest ? (50 * Math.abs(value)) / largest : 0;
    box.append('span').style('left', `${value > 0 ? 50 : 50 - share}%`).style('width', `${share}%`)
      .style('background', value > 0 ? 'var(--worse)' : 'var(--better)');
  }

  function figures(into, entries) {
    const list = into.append('dl').attr('class', 'figures');
    for (const {name, text, small, id} of entries) {
      const box = list.append('div');
      box.append('dt').text(name);
      const value = box.append('dd').text(text);
      if (id) value.attr('data-figure', id);
      if (small) value.append('small').text(small);
    }
    return list;
  }

  // A chart and beside it what was clicked at: {chart, width, tell, more}. `tell` takes the name of
  // the thing, [name, text] pairs, and further lines; `more` has room for what is always told.
  function beside(into, hint) {
    const box = into.append('div').attr('class', 'beside');
    const chart = box.append('div').attr('class', 'chart');
    const aside = box.append('aside');
    const detail = aside.append('div').attr('id', 'selected').attr('aria-live', 'polite');
    const more = aside.append('div');
    detail.append('p').attr('class', 'note').text(hint);
    function tell(title, pairs, lines = []) {
      detail.selectAll('*').remove();
      detail.append('h3').text(title);
      const list = detail.append('dl');
      for (const [name, text] of pairs.filter(([, t]) => t)) {
        list.append('dt').text(name);
        list.append('dd').text(text);
      }
      for (const line of lines.filter(Boolean)) detail.append('p').text(line);
      return detail;
    }
    return {chart, width: Math.floor(chart.node().clientWidth), tell, more};
  }

  const boxOf = (node) => node.getBoundingClientRect();
  const overlap = (a, b, room) => a.left < b.right + room && b.left < a.right + room &&
    a.top < b.bottom && b.top < a.bottom;
  // Takes away texts that would be printed over earlier ones, or over the edge of the chart.
  function clear(texts, svg, room = 6) {
    const edge = boxOf(svg.node());
    const kept = [];
    texts.each(function() {
      const box = boxOf(this);
      const fits = box.left >= edge.left - 1 && box.right <= edge.right + 1;
      if (fits && kept.every((other) => !overlap(box, other, room))) kept.push(box);
      else d3.select(this).remove();
    });
  }

  // Labels of ticks keep within the chart and off each other.
  function axis(svg, make, transform) {
    const group = svg.append('g').attr('class', 'axis').attr('transform', transform).call(make);
    tidy(group, svg);
    return group;
  }
  function tidy(group, svg) {
    const edge = boxOf(svg.node());
    group.selectAll('.tick text').each(function() {
      const box = boxOf(this), text = d3.select(this);
      if (text.attr('dy') === '0.32em') return;  // At the side.
      if (box.right > edge.right) text.attr('text-anchor', 'end');
      if (box.left < edge.left) text.attr('text-anchor', 'start');
    });
    clear(group.selectAll('.tick text'), svg);
  }
  // How many labels there is room for.
  const ticksIn = (pixels, each = 90) => Math.max(2, Math.floor(pixels / each));

  return {tips, panel, columns, legend, choices, bar, difference, figures, beside, axis, tidy, clear,
          ticksIn};
})();
