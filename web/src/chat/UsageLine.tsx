/** What an answer took: tokens, speed, and how full the context is. */

import type { Message } from "../protocol";
import { duration, words } from "../words/words";

export function UsageLine({ message: { usage, timings } }: { readonly message: Message }) {
  if (usage === null) return null;
  const facts = [words.tokens(usage.generated_tokens)];
  if (timings !== null && timings.decode_tokens_per_s > 0)
    facts.push(words.tokensPerSecond(timings.decode_tokens_per_s.toFixed(0)));
  if (timings !== null) facts.push(words.firstToken(duration(timings.first_token_s)));
  if (usage.context_length > 0) {
    const used = usage.prompt_tokens + usage.generated_tokens;
    facts.push(words.context(Math.round((100 * used) / usage.context_length)));
  }
  return <span class="usage">{facts.join(" · ")}</span>;
}
