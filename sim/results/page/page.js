// The page itself: title, tabs, which run is shown, light and dark.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const runs = data.runs || [];
  const reported = runs.filter((run) => run.report);
  const ofRun = [
    ['Summary', summary], ['Timeline', timeline], ['Breakdown', breakdown], ['Roofline', roofline],
    ['Memory', memory], ['Torus', torus], ['Collectives', collectives],
  ];
  const own = (data.tabs || []).map((t) =>
    ({title: t.title, show: (into) => panels.show(into, t.panels, open)}));
  const comparison = reported.length > 1 ?
    [{title: 'Comparison', show: (into) => compare.show(into, runs, open)}] : [];
  // Where there is no report of a run, its summary tells what else is known.
  const tabsOf = (run) => ofRun.filter(([title]) => (title === 'Summary' ? run :
    title === 'Timeline' ? runs.some((r) => r.timeline) && run.report : run && run.report))
    .map(([title, view]) => ({title, show: (into) => view.show(into, run, open)}));
  // The address names runs by their letters, which stay when other runs come.
  const chosen = () => Math.max(0,
    runs.findIndex((run, i) => compare.letter(i) === address.get('run')));
  const allTabs = () => (own.length ? [...own, ...comparison] : comparison)
    .concat(runs.length ? tabsOf(runs[chosen()]) : []);

  d3.select('#title').text(data.title);
  const called = runs.map((run, i) => (runs.length > 1 ? `${compare.letter(i)}: ` : '') + run.name);
  d3.select('#subtitle').text(data.subtitle || (runs.length === 1 ?
    `one step of ${runs[0].report.workload} on ${runs[0].report.config}, simulated by tpusim` :
    called.join(', ')));

  function select(title, focus) {
    address.go({tab: title});
    refresh(focus);
  }
  function open(name) {
    const i = runs.findIndex((run) => run.name === name);
    if (i < 0) return;
    address.go({run: i ? compare.letter(i) : '', tab: 'Summary'});
    refresh();
    scrollTo(0, 0);
  }
  function refresh(focus) {
    const tabs = allTabs();
    const index = Math.max(tabs.findIndex((t) => t.title === address.get('tab')), 0);
    const buttons = d3.select('#tabs').selectAll('button').data(tabs).join('button')
      .attr('type', 'button').attr('role', 'tab').attr('aria-controls', 'panels')
      .attr('id', (t, i) => `tab-${i}`)
      .attr('aria-selected', (t, i) => String(i === index))
      .attr('tabindex', (t, i) => (i === index ? 0 : -1))
      .text((t) => t.title)
      .on('click', (t) => select(t.title))
      .on('keydown', (t) => {
        const turn = {ArrowRight: 1, ArrowLeft: -1}[d3.event.key];
        if (turn) select(tabs[(tabs.indexOf(t) + turn + tabs.length) % tabs.length].title, true);
      });
    buttons.nodes()[index].scrollIntoView({block: 'nearest', inline: 'nearest'});
    if (focus) buttons.nodes()[index].focus();
    d3.select('#run').property('selectedIndex', chosen());
    d3.select('#tip').attr('hidden', true);
    const into = d3.select('#panels').attr('role', 'tabpanel')
      .attr('aria-labelledby', `tab-${index}`);
    into.selectAll('*').remove();
    if (tabs.length) tabs[index].show(into);
  }

  if (runs.length > 1) {
    d3.select('#run-choice').attr('hidden', null);
    d3.select('#run').on('change', function() {
      const i = this.selectedIndex;
      address.go({run: i ? compare.letter(i) : ''}, true);
      refresh();
    }).selectAll('option').data(called).join('option').text((n) => n);
  }
  const theme = d3.select('#theme');
  function setTheme(dark) {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    theme.attr('aria-pressed', String(dark)).text(dark ? 'light' : 'dark');
    refresh();
  }
  theme.on('click', () => setTheme(document.documentElement.dataset.theme !== 'dark'));
  setTheme(matchMedia('(prefers-color-scheme: dark)').matches);
  address.onChange(() => refresh());
  let width = innerWidth;
  addEventListener('resize', () => {
    if (innerWidth !== width) refresh();
    width = innerWidth;
  });
})();
