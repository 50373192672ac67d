/** Draws a figure with Plotly, in the colours of the page. */

import "./plot_styles";
import Plotly from "plotly.js-cartesian-dist-min";

/** Seen on light and on dark paper. */
const COLOURS = ["#4a7fb5", "#c96a4f", "#6a9a5b", "#a97bb0", "#c49a3c", "#4d9a94", "#8a8378"];

/** What this Plotly draws. One for maps and three dimensions would be three times as large as the rest of the page. */
const TRACES: ReadonlySet<unknown> = new Set(
  ["bar", "box", "contour", "heatmap", "histogram", "histogram2d", "histogram2dcontour"].concat([
    "image",
    "pie",
    "scatter",
    "scattergl",
    "scatterternary",
    "violin",
  ]),
);

/** Draws the figure, and gives back what takes it away again. Throws where it is none that this Plotly can draw. */
export async function draw(place: HTMLElement, json: string, colours: CSSStyleDeclaration): Promise<() => void> {
  const figure = JSON.parse(json) as { data?: unknown; layout?: Record<string, unknown> };
  if (!Array.isArray(figure.data)) throw new Error("A figure has its traces in a list named data.");
  for (const trace of figure.data as { type?: unknown }[]) {
    if (!TRACES.has(trace.type ?? "scatter")) throw new Error(`No trace of type ${String(trace.type)} can be drawn.`);
  }
  const ink = colours.getPropertyValue("--ink").trim();
  const line = colours.getPropertyValue("--line").trim();
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: line };
  const theme = {
    paper_bgcolor: "transparent",
    plot_bgcolor: "transparent",
    font: { color: ink, family: colours.fontFamily },
    colorway: COLOURS,
    margin: { t: 40, r: 20, b: 45, l: 50 },
    xaxis: axis,
    yaxis: axis,
  };
  // Faster points need WebGL; slower ones look the same.
  const data = figure.data.map((trace) => (trace.type === "scattergl" ? { ...trace, type: "scatter" } : trace));
  const layout = { ...theme, ...withoutTemplate(figure.layout ?? {}), autosize: true };
  await Plotly.newPlot(place, data, layout, { responsive: true, displaylogo: false, displayModeBar: false });
  return () => Plotly.purge(place);
}

/** Figures carry a whole theme of white paper along; the page has its own. */
function withoutTemplate({ template: _template, ...layout }: Record<string, unknown>): Record<string, unknown> {
  return layout;
}
