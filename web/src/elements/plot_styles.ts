/** Tells Plotly, before it is loaded, that its styles are there: it then writes none into the page. */

import "./plot.css";

const mark = document.createElement("meta");
mark.id = "plotly.js-style-global";
mark.className = "no-inline-styles";
document.head.append(mark);
