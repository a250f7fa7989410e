// The bearer token of this tab, if it has one, and what is asked with it.

const KEPT = "pumice-token";

export const token = () => sessionStorage.getItem(KEPT);
export const keepToken = (given) => sessionStorage.setItem(KEPT, given);

// Whether the address has one. It is taken out of it at once, so that no address that is shared has it.
export function takeToken() {
  const found = /^#token=([\w.-]+)$/.exec(location.hash);
  if (!found) return false;
  keepToken(found[1]);
  history.replaceState(null, "", "#/cluster");
  return true;
}

export const ask = (path, { headers, ...more } = {}) =>
  fetch(path, { ...more, headers: { ...(token() && { Authorization: `Bearer ${token()}` }), ...headers } });
