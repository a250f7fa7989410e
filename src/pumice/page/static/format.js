// Numbers as people read them.

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const number = (value) => (value == null || Number.isNaN(value) ? "–" : Math.abs(value) >= 1000 ? whole.format(value) : fine.format(value));

export const percent = (value) => (value == null ? "–" : `${fine.format(100 * value)} %`);

// The two largest units: 2 d 3 h, 5 min 20 s, 0.4 s.
export function duration(seconds) {
  if (seconds == null || Number.isNaN(seconds)) return "–";
  if (seconds < 0) return `−${duration(-seconds)}`;
  if (seconds < 10) return `${fine.format(seconds)} s`;
  let left = Math.round(seconds);
  const at = UNITS.findIndex(([, size]) => left >= size);
  const parts = [];
  for (const [unit, size] of UNITS.slice(at, at + 2)) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count) parts.push(`${count} ${unit}`);
  }
  return parts.join(" ");
}

export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");

// Of periods that begin in UTC.
const dated = (more) => { const words = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC", ...more }); return (seconds) => words.format(seconds * 1000); };
export const day = dated({}), hour = dated({ hour: "2-digit", minute: "2-digit" });

export const FORMATS = { number, percent, duration, clock, day, hour };
