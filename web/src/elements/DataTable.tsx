/** A data frame: sortable, a page at a time, however many rows there are. */

import { useMemo, useState } from "preact/hooks";
import type { Element } from "../protocol";
import { Icon } from "../parts/Icon";
import { words } from "../words/words";
import { useContent } from "./content";
import { type Frame, type Order, cell, parseFrame, sorted } from "./frame";

const PAGE_ROWS = 10;

export function DataTable({ element }: { readonly element: Element }) {
  const content = useContent(element.url);
  const text = content.state === "ready" ? content.text : null;
  const frame = useMemo(() => (text === null ? null : parseFrame(text)), [text]);
  if (content.state === "loading") return <p class="pulse">…</p>;
  if (frame === null) return <p class="state">{words.loadFailed}</p>;
  return <Rows name={element.name} frame={frame} />;
}

function Rows({ name, frame }: { readonly name: string; readonly frame: Frame }) {
  const [order, setOrder] = useState<Order | null>(null);
  const [page, setPage] = useState(0);
  const rows = useMemo(() => sorted(frame.rows, order), [frame, order]);
  const lastPage = Math.max(0, Math.ceil(rows.length / PAGE_ROWS) - 1);
  const turn = (column: number): void => {
    setOrder(order?.column === column ? { column, isFalling: !order.isFalling } : { column, isFalling: false });
    setPage(0);
  };
  return (
    <>
      <figcaption>
        {name} <small>{words.rows(rows.length)}</small>
      </figcaption>
      <div class="table" tabIndex={0} role="group" aria-label={name}>
        <table>
          <thead>
            <tr>
              {frame.columns.map((column, i) => (
                <th
                  key={i}
                  scope="col"
                  data-align={typeof rows[0]?.[i] === "number" ? "right" : undefined}
                  aria-sort={order?.column === i ? (order.isFalling ? "descending" : "ascending") : "none"}
                >
                  <button type="button" class="link" onClick={() => turn(i)}>
                    {column}
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS).map((row, r) => (
              <tr key={r}>
                {row.map((value, i) => (
                  <td key={i} data-align={typeof value === "number" ? "right" : undefined}>
                    {cell(value)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {lastPage > 0 && (
        <nav class="pager" aria-label={words.pages}>
          <button
            type="button"
            class="quiet icon-button flipped"
            disabled={page === 0}
            aria-label={words.previousPage}
            onClick={() => setPage(page - 1)}
          >
            <Icon name="chevron" size={16} />
          </button>
          <span>
            {page + 1} / {lastPage + 1}
          </span>
          <button
            type="button"
            class="quiet icon-button"
            disabled={page === lastPage}
            aria-label={words.nextPage}
            onClick={() => setPage(page + 1)}
          >
            <Icon name="chevron" size={16} />
          </button>
        </nav>
      )}
    </>
  );
}
