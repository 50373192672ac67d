import "./style/tokens.css";
import "./style/base.css";
import "./style/controls.css";
import "./style/layout.css";
import { render } from "preact";
import { App } from "./App";
import { Client, ClientProvider } from "./client";
import { connectOutside } from "./embed/outside";
import { language } from "./words/words";

document.documentElement.lang = language;
const client = new Client();
connectOutside(client);
render(
  <ClientProvider value={client}>
    <App />
  </ClientProvider>,
  document.body,
);
client.start();
