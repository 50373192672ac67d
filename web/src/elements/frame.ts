/** A data frame as it comes: `{"columns": […], "rows": [[…]]}`. */

export interface Frame {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

export interface Order {
  readonly column: number;
  readonly isFalling: boolean;
}

/** The frame, or null for anything else. */
export function parseFrame(text: string): Frame | null {
  try {
    const data: unknown = JSON.parse(text);
    if (typeof data !== "object" || data === null || !("columns" in data) || !("rows" in data)) return null;
    const { columns, rows } = data;
    if (!Array.isArray(columns) || !Array.isArray(rows) || !rows.every((row) => Array.isArray(row))) return null;
    return { columns: columns.map(String), rows };
  } catch {
    return null;
  }
}

/** Rows in the order of one column: numbers by size, everything else as words; what is missing comes last. */
export function sorted(rows: Frame["rows"], order: Order | null): Frame["rows"] {
  if (order === null) return rows;
  const sign = order.isFalling ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [a[order.column], b[order.column]];
    if (x == null || y == null) return x == null && y == null ? 0 : x == null ? 1 : -1;
    if (typeof x === "number" && typeof y === "number") return sign * (x - y);
    return sign * String(x).localeCompare(String(y), undefined, { numeric: true });
  });
}

export function cell(value: unknown): string {
  if (value == null) return "";
  if (typeof value === "number") return value.toLocaleString(undefined, { maximumFractionDigits: 6 });
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
