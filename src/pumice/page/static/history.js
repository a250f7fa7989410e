// What queues held in the last hour: a point for each change, as long as there are few; the server keeps them by the same rules.

const HOUR_S = 3600, MOST_POINTS = 120;

export function noted(points, at, held) {
  if (points.length && JSON.stringify(points.at(-1).held) === JSON.stringify(held)) return points;
  const begin = points.findLastIndex((point) => point.at <= at - HOUR_S);
  const found = [...points.slice(Math.max(0, begin)), { at, held }];
  if (found.length > MOST_POINTS) found.splice(least(found), 1);
  return found;
}

// The point between the two intervals that are the shortest together.
function least(points) {
  let best = 1;
  const length = (index) => points[index + 1].at - points[index - 1].at;
  for (let index = 2; index < points.length - 1; index += 1) if (length(index) < length(best)) best = index;
  return best;
}

// The same up to the present, cut off an hour ago.
export function lastHour(points, at, held) {
  const begin = at - HOUR_S;
  return [...points.map((point) => ({ ...point, at: Math.max(begin, point.at) })), { at, held }];
}
