declare module "plotly.js-cartesian-dist-min" {
  const Plotly: {
    newPlot(place: HTMLElement, data: unknown[], layout: object, config: object): Promise<unknown>;
    purge(place: HTMLElement): void;
  };
  export default Plotly;
}
