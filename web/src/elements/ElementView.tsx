/** One element, by its kind. */

import type { JSX } from "preact";
import { absolute } from "../address";
import { Code } from "../markdown/Code";
import { Markdown } from "../markdown/Markdown";
import type { Element } from "../protocol";
import { words } from "../words/words";
import { Chart } from "./Chart";
import { CustomView } from "./CustomView";
import { DataTable } from "./DataTable";
import { FileCard } from "./FileCard";
import { ImageView } from "./ImageView";
import { useContent } from "./content";

type View = (props: { element: Element }) => JSX.Element | null;

const VIEWS: Readonly<Record<Element["kind"], View>> = {
  text: TextView,
  image: ImageView,
  pdf: PdfView,
  audio: AudioView,
  video: VideoView,
  file: FileCard,
  plotly: Chart,
  dataframe: DataTable,
  custom: CustomView,
};

export function ElementView({ element }: { readonly element: Element }) {
  const View = VIEWS[element.kind];
  return (
    <figure class="element" data-kind={element.kind} data-size={element.size} data-id={element.id}>
      <View element={element} />
    </figure>
  );
}

function TextView({ element }: { readonly element: Element }) {
  const content = useContent(element.url);
  if (content.state === "failed") return <p class="state">{words.loadFailed}</p>;
  if (content.state !== "ready") return <p class="pulse">…</p>;
  return (
    <>
      {element.name !== "" && <figcaption>{element.name}</figcaption>}
      {element.language ? <Code text={content.text} language={element.language} /> : <Markdown text={content.text} />}
    </>
  );
}

function PdfView({ element }: { readonly element: Element }) {
  const page = typeof element.props["page"] === "number" ? `#page=${element.props["page"]}` : "";
  return (
    <>
      <FileCard element={element} />
      {element.url !== null && <iframe src={absolute(element.url) + page} title={element.name} loading="lazy" />}
    </>
  );
}

function AudioView({ element }: { readonly element: Element }) {
  return (
    <>
      <figcaption>{element.name}</figcaption>
      <audio controls src={absolute(element.url ?? "")} autoplay={element.props["auto_play"] === true} />
    </>
  );
}

function VideoView({ element }: { readonly element: Element }) {
  return <video controls playsInline preload="metadata" src={absolute(element.url ?? "")} aria-label={element.name} />;
}
