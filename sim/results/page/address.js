// What is shown, kept behind the '#' of the page's address: a link leads to the same tab and
// selection, and going back to the tab before.
const address = (() => {
  // These stay when another tab is chosen.
  const lasting = ['tab', 'run', 'against'];
  let state = new URLSearchParams(location.hash.slice(1));
  const get = (key, otherwise = '') => (state.has(key) ? state.get(key) : otherwise);
  const text = () => `#${state}`;
  function assign(changes) {
    for (const [key, value] of Object.entries(changes)) {
      if (value === '' || value === null || value === undefined) state.delete(key);
      else state.set(key, String(value));
    }
  }
  // Without an entry in the history: filters, zooming, selections.
  function set(changes) {
    assign(changes);
    history.replaceState(null, '', text());
  }
  // To another tab or run.
  function go(changes, keep = false) {
    if (!keep) {
      for (const key of [...state.keys()]) if (!lasting.includes(key)) state.delete(key);
    }
    assign(changes);
    if (text() !== location.hash) history.pushState(null, '', text());
  }
  // Somebody went back, or typed another address.
  function onChange(act) {
    addEventListener('popstate', () => {
      state = new URLSearchParams(location.hash.slice(1));
      act();
    });
  }
  return {get, set, go, onChange};
})();
