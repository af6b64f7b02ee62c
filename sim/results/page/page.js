// The page itself: title, tabs, which run is shown, light and dark.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const runs = data.runs || [];
  let chosen = 0;
  const ofRun = [
    ['Summary', summary], ['Timeline', timeline], ['Breakdown', breakdown], ['Roofline', roofline],
    ['Memory', memory], ['Torus', torus], ['Collectives', collectives],
  ];
  const tabs = [
    ...(runs.length > 1 ? [{title: 'Comparison', show: (into) => compare.show(into, runs)}] : []),
    ...(data.tabs || []).map((t) => ({title: t.title, show: (into) => panels.show(into, t.panels)})),
    ...(runs.length ? ofRun.filter(([title]) =>
      title !== 'Timeline' || runs.some((run) => run.timeline)).map(([title, view]) =>
      ({title, show: (into) => view.show(into, runs[chosen])})) : []),
  ];

  d3.select('#title').text(data.title);
  const names = runs.map((run, i) => (runs.length > 1 ? `${compare.letter(i)}: ` : '') + run.name);
  d3.select('#subtitle').text(data.subtitle || (runs.length === 1 ?
    `one step of ${runs[0].report.workload} on ${runs[0].report.config}, simulated by tpusim` :
    names.join(', ')));

  const buttons = d3.select('#tabs').selectAll('button').data(tabs).join('button')
    .attr('type', 'button').attr('role', 'tab').attr('aria-controls', 'panels')
    .attr('id', (t, i) => `tab-${i}`)
    .text((t) => t.title)
    .on('click', (t) => select(tabs.indexOf(t)))
    .on('keydown', (t) => {
      const turn = {ArrowRight: 1, ArrowLeft: -1}[d3.event.key];
      if (!turn) return;
      const next = (tabs.indexOf(t) + turn + tabs.length) % tabs.length;
      select(next);
      buttons.nodes()[next].focus();
    });
  let shown = 0;
  function select(index) {
    shown = index;
    buttons.attr('aria-selected', (t, i) => String(i === index))
      .attr('tabindex', (t, i) => (i === index ? 0 : -1));
    d3.select('#tip').attr('hidden', true);
    const into = d3.select('#panels').attr('role', 'tabpanel')
      .attr('aria-labelledby', `tab-${index}`);
    into.selectAll('*').remove();
    tabs[index].show(into);
  }

  if (runs.length > 1) {
    d3.select('#run-choice').attr('hidden', null);
    d3.select('#run').on('change', function() {
      chosen = this.selectedIndex;
      select(shown);
    }).selectAll('option').data(names).join('option').text((n) => n);
  }
  const theme = d3.select('#theme');
  function setTheme(dark) {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    theme.attr('aria-pressed', String(dark)).text(dark ? 'light' : 'dark');
    if (tabs.length) select(shown);
  }
  theme.on('click', () => setTheme(document.documentElement.dataset.theme !== 'dark'));
  setTheme(matchMedia('(prefers-color-scheme: dark)').matches);
  let width = innerWidth;
  addEventListener('resize', () => {
    if (innerWidth !== width) select(shown);
    width = innerWidth;
  });
})();
