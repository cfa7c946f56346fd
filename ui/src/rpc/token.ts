// The secret that the server requires. It comes after the # of the address that vramscope printed, which browsers never send, and
// stays in this tab's storage, which belongs to this port alone. A cookie would be sent to every other port of the host.
const NAME = "vramscope-token";
let held = "";

/** "#token=SECRET" or "#token=SECRET#peak?at=end": the secret and what is left of the address; null where there is none. */
export function splitToken(hash: string): { token: string; rest: string } | null {
  const found = hash.match(/^#token=([^#]+)(#.*)?$/);
  return found ? { token: decodeURIComponent(found[1]!), rest: found[2] ?? "" } : null;
}

/** Takes the token out of the address bar, so that copied links do not carry it. True: it is another one than before. */
export function takeToken(): boolean {
  const found = splitToken(location.hash);
  if (!found) return false;
  const before = token();
  held = found.token;
  try { sessionStorage.setItem(NAME, held); } catch { /* no storage: the token lasts as long as the page */ }
  history.replaceState(null, "", `${location.pathname}${location.search}${found.rest}`);
  return before !== held;
}

function token(): string {
  if (held) return held;
  try { return sessionStorage.getItem(NAME) ?? ""; } catch { return ""; }
}

export function authorization(): Record<string, string> {
  const secret = token();
  return secret ? { Authorization: `Bearer ${secret}` } : {};
}
