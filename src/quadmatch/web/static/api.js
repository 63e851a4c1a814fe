// The OpenAPI description as a page.
const { element, table } = {
  element(name, text, ...children) {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    made.append(...children);
    return made;
  },
  table(caption, rows) {
    const lines = rows.map(([key, text]) => element("tr", "", element("td", "", element("code", key)), element("td", text)));
    return element("table", "", element("caption", caption), element("tbody", "", ...lines));
  },
};

function describe(path, method, call) {
  const section = element("section", "", element("h2", "", element("b", method.toUpperCase()), path), element("p", call.summary));
  const fields = [];
  for (const parameter of call.parameters ?? []) fields.push([parameter.name, "in the address"]);
  const form = call.requestBody?.content["multipart/form-data"]?.schema;
  for (const [name, field] of Object.entries(form?.properties ?? {})) {
    const kind = field.format === "binary" ? "file" : field.type;
    const rest = form.required.includes(name) ? "required" : `else ${JSON.stringify(field.default)}`;
    fields.push([name, [kind, rest, field.description].filter(Boolean).join(", ")]);
  }
  if (fields.length) section.append(table("Takes", fields));
  const answers = Object.entries(call.responses).filter(([status]) => status !== "422").map(([status, answer]) => {
    const types = Object.entries(answer.content ?? {}).map(([type, { schema }]) => [type, Object.keys(schema?.properties ?? {}).join(", ")].filter(Boolean).join(": "));
    return [status, [answer.description, ...types].filter(Boolean).join(" ")];
  });
  section.append(table("Answers", answers));
  return section;
}

try {
  const response = await fetch("/openapi.json", { signal: AbortSignal.timeout(15000) });
  const description = await response.json();
  document.getElementById("introduction").textContent = description.info.description;
  document.getElementById("call").textContent = [
    `curl ${location.origin}/api/match \\`,
    "  -F image_a=@a.jpg -F 'points_a=[[120, 88], [240, 91], [180, 160]]' \\",
    "  -F image_b=@b.jpg -F 'points_b=[[98, 70], [215, 82], [150, 149]]'",
  ].join("\n");
  const calls = Object.entries(description.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, call]) => describe(path, method, call)));
  document.getElementById("calls").replaceChildren(...calls);
} catch {
  document.getElementById("calls").textContent = "The description cannot be read. Is “quadmatch serve” still running?";
}
