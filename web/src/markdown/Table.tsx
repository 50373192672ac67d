/** A table of Markdown, which scrolls sideways by itself where it is too wide. */

import type { Tokens } from "marked";
import { Inline } from "./Inline";

export function Table({ token }: { readonly token: Tokens.Table }) {
  const aligned = (i: number): string | undefined => token.align[i] ?? undefined;
  return (
    <div class="table" tabIndex={0} role="group">
      <table>
        <thead>
          <tr>
            {token.header.map((cell, i) => (
              <th key={i} scope="col" data-align={aligned(i)}>
                <Inline tokens={cell.tokens} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, r) => (
            <tr key={r}>
              {row.map((cell, i) => (
                <td key={i} data-align={aligned(i)}>
                  <Inline tokens={cell.tokens} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
