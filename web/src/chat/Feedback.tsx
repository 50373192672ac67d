/** Whether an answer was good, and why not. */

import { useState } from "preact/hooks";
import { useClient, usePage } from "../client";
import { LineField } from "../composer/LineField";
import { Icon } from "../parts/Icon";
import { words } from "../words/words";

export function Feedback({ messageId }: { readonly messageId: string }) {
  const client = useClient();
  const value = usePage((page) => page.current.feedback.get(messageId) ?? 0);
  const [comment, setComment] = useState<string | null>(null);

  const rate = (next: -1 | 1): void => {
    client.rate(messageId, value === next ? 0 : next);
    setComment(next === -1 && value !== -1 ? "" : null);
  };
  const tell = (): void => {
    if (comment) client.rate(messageId, -1, comment);
    setComment(null);
  };

  return (
    <>
      <button
        type="button"
        class="quiet icon-button"
        aria-pressed={value === 1}
        title={words.good}
        aria-label={words.good}
        onClick={() => rate(1)}
      >
        <Icon name="up" size={16} />
      </button>
      <button
        type="button"
        class="quiet icon-button"
        aria-pressed={value === -1}
        title={words.bad}
        aria-label={words.bad}
        onClick={() => rate(-1)}
      >
        <Icon name="down" size={16} />
      </button>
      {comment !== null && (
        <LineField
          value={comment}
          label={words.comment}
          placeholder={words.comment}
          hasFocus
          onInput={setComment}
          onEnter={tell}
          onEscape={() => setComment(null)}
        />
      )}
    </>
  );
}
