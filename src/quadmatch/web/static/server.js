// Calls to the server: each ends in an answer or in an Error with a sentence for people.
async function call(path, options, seconds) {
  const control = new AbortController();
  const timer = setTimeout(() => control.abort(), seconds * 1000);
  let stage = "connect";
  try {
    const response = await fetch(path, { ...options, signal: control.signal });
    stage = "read";
    if (!response.ok) throw new Error(await explain(response));
    return { headers: response.headers, content: await (options?.as === "blob" ? response.blob() : response.json()) };
  } catch (error) {
    if (control.signal.aborted) throw new Error(`The server did not answer within ${seconds} s. Try again.`);
    if (error instanceof TypeError) {
      throw new Error(stage === "connect" ? "The server does not answer. Is “quadmatch serve” still running?" : "The answer was cut off. Try again.");
    }
    if (error instanceof SyntaxError) throw new Error("The server's answer cannot be read.");
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function explain(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `The server answered ${response.status} ${response.statusText}.`;
  }
}

function form(fields) {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  return { method: "POST", body };
}

export const getStatus = async () => (await call("/api/status", {}, 15)).content;

export async function getExample(name) {
  const path = `/api/examples/${encodeURIComponent(name)}`;
  const { content } = await call(path, {}, 30);
  const [a, b] = await Promise.all(["a", "b"].map((side) => call(`${path}/${side}.png`, { as: "blob" }, 30)));
  return { ...content, a: a.content, b: b.content };
}

export async function showPicture(file, seconds) {
  const { headers, content } = await call("/api/picture", { ...form({ image: file }), as: "blob" }, seconds);
  return { blob: content, width: Number(headers.get("X-Picture-Width")), height: Number(headers.get("X-Picture-Height")) };
}

export const detectPoints = async (file, count, seconds) =>
  (await call("/api/detect", form({ image: file, count }), seconds)).content.points;

export const readPoints = async (file, { file: picture, width, height }, seconds) =>
  (await call("/api/points", form({ file, image: picture.name, width, height }), seconds)).content;

export async function matchPictures(a, b, { partial, turned, model }, seconds) {
  const fields = { partial, orientation: turned ? "auto" : "0" };
  if (model) fields.model = model;
  for (const pane of [a, b]) {
    const names = pane.names();
    fields[`image_${pane.side}`] = pane.file;
    fields[`points_${pane.side}`] = JSON.stringify(pane.places());
    if (names) fields[`names_${pane.side}`] = JSON.stringify(names);
    if (pane.box) fields[`box_${pane.side}`] = pane.box.join(",");
  }
  return (await call("/api/match", form(fields), seconds)).content;
}
