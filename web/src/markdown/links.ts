/** Which addresses a person may follow from what a model wrote. */

const SAFE = new Set(["http:", "https:", "mailto:"]);

/** The address if it is safe to follow, and null for `javascript:`, `data:` and all that is not known to be. */
export function safeLink(href: string): string | null {
  const trimmed = href.trim();
  if (trimmed.startsWith("#")) return null;
  try {
    const url = new URL(trimmed);
    return SAFE.has(url.protocol) ? url.href : null;
  } catch {
    return null; // relative addresses lead into the app, where no model has any business
  }
}
