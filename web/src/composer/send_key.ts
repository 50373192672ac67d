/**
 * Whether a key sends. Enter does; Shift+Enter is a new line; and Enter that ends a conversion belongs to the input
 * method, whatever order the browser tells it in:
 *
 *   Chrome, Firefox   keydown (isComposing) → compositionend
 *   Safari            compositionend → keydown (keyCode 229, not composing any more)
 *   some input methods  compositionend → keydown (keyCode 13) in the same moment
 */

export class SendKey {
  private isComposing = false;
  private endedAt = Number.NEGATIVE_INFINITY;

  readonly compositionStarted = (): void => {
    this.isComposing = true;
  };

  readonly compositionEnded = (event: Event): void => {
    this.isComposing = false;
    this.endedAt = event.timeStamp;
  };

  /** True for Enter or whatever else is meant for the page and not for the input method. */
  isForPage(event: KeyboardEvent): boolean {
    if (event.isComposing || event.keyCode === 229 || this.isComposing) return false;
    return event.timeStamp - this.endedAt > SAME_MOMENT_MS;
  }

  sends(event: KeyboardEvent): boolean {
    return event.key === "Enter" && !event.shiftKey && !event.altKey && this.isForPage(event);
  }
}

const SAME_MOMENT_MS = 30;
