// Scores to colours: dark blue to yellow in even steps of lightness, so that it reads without colour vision too.
const STOPS = [[68, 57, 131], [49, 104, 142], [33, 145, 140], [53, 183, 121], [144, 215, 67], [253, 231, 37]];

export function colourOf(score) {
  const place = Math.min(Math.max(score, 0), 1) * (STOPS.length - 1);
  const start = Math.min(Math.floor(place), STOPS.length - 2);
  const mixed = STOPS[start].map((value, c) => Math.round(value + (place - start) * (STOPS[start + 1][c] - value)));
  return `rgb(${mixed.join(" ")})`;
}

export const gradient = `linear-gradient(90deg, ${STOPS.map((stop) => `rgb(${stop.join(" ")})`).join(", ")})`;

export const widthOf = (score) => 1.6 + 1.7 * Math.min(Math.max(score, 0), 1);
export const strengthOf = (score) => 0.72 + 0.28 * Math.min(Math.max(score, 0), 1);
/** What lies under a line, so that it is seen on any picture: dark below bright colours, bright below dark ones. */
export const casingOf = (score) => (score < 0.45 ? "#fff" : "#0b0d12");
