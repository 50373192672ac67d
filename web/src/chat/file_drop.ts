/** Files that are dropped anywhere on the conversation go to the field in which a person writes. */

import { useState } from "preact/hooks";

/** The composer listens for this; what it carries is `File[]`. */
export const FILES_DROPPED = "kaiwa-files-dropped";

export function useFileDrop() {
  const [depth, setDepth] = useState(0);
  const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") === true;
  const handlers = {
    onDragEnter: (event: DragEvent) => hasFiles(event) && setDepth(depth + 1),
    onDragLeave: (event: DragEvent) => hasFiles(event) && setDepth(Math.max(0, depth - 1)),
    onDragOver: (event: DragEvent) => hasFiles(event) && event.preventDefault(),
    onDrop: (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setDepth(0);
      dispatchEvent(new CustomEvent(FILES_DROPPED, { detail: [...(event.dataTransfer?.files ?? [])] }));
    },
  };
  return { isOver: depth > 0, handlers };
}
