/** Where a person writes: a message, the answer to a question, or the next message while an answer is under way. */

import { useState } from "preact/hooks";
import { useClient, usePage } from "../client";
import { Icon, NamedIcon } from "../parts/Icon";
import { openAsk } from "../state/chat";
import { words } from "../words/words";
import { AttachButton } from "./AttachButton";
import { Attachments } from "./Attachments";
import { CommandMenu } from "./CommandMenu";
import { Field } from "./Field";
import { LongTexts } from "./LongTexts";
import { Modes, valueOf } from "./Modes";
import { useCommandChoice } from "./command_choice";
import { useDraft } from "./draft";
import { type Limits, useUploads } from "./uploads";
import "./composer.css";

const NO_LIMITS: Limits = { maxBytes: 0, maxFiles: 0, accept: [] };

export function Composer({ onSent }: { readonly onSent: () => void }) {
  const client = useClient();
  const app = usePage((page) => page.app);
  const chat = usePage((page) => page.current);
  const [text, setText] = useDraft();
  const [modeValues, setModeValues] = useState<Readonly<Record<string, string>>>({});
  const canUpload = app?.can_upload === true;
  const uploads = useUploads(
    app === null || !canUpload
      ? NO_LIMITS
      : { maxBytes: app.max_upload_bytes, maxFiles: app.max_upload_files, accept: app.accept },
  );
  const command = useCommandChoice(chat.commands, text, () => setText(""));
  const ask = openAsk(chat);
  const isAnswer = ask?.kind === "text";
  const isRunning = chat.run !== null;
  const [longTexts, setLongTexts] = useState<readonly string[]>([]);
  const whole = [text, ...longTexts].filter((each) => each.trim() !== "").join("\n\n");
  const isEmpty = whole === "" && uploads.list.length === 0;

  const send = (): void => {
    if (isEmpty || uploads.isBusy) return;
    const limit = app?.max_text_chars ?? Number.POSITIVE_INFINITY;
    if (whole.length > limit) return client.toast("warning", words.tooLong(limit));
    const fileIds = uploads.list.map(({ id }) => id);
    if (isAnswer) client.answer(ask.id, { text: whole });
    else {
      const modes = Object.fromEntries(chat.modes.map((mode) => [mode.id, valueOf(mode, modeValues)]));
      client.say(whole, { fileIds, command: command.chosen?.id ?? null, modes });
    }
    setText("");
    setLongTexts([]);
    uploads.clear();
    command.sent();
    onSent();
  };

  return (
    <form class="composer" aria-label={words.messagePlaceholder} onSubmit={(event) => event.preventDefault()}>
      {command.menu.length > 0 && (
        <CommandMenu commands={command.menu} active={command.active} onChoose={command.choose} />
      )}
      <Attachments uploads={uploads} />
      <LongTexts texts={longTexts} onRemove={(gone) => setLongTexts(longTexts.filter((_, i) => i !== gone))} />
      <Field
        value={text}
        label={isAnswer ? words.answerPlaceholder : words.messagePlaceholder}
        placeholder={placeholder(isAnswer, isRunning, chat.hasEnded)}
        hasFocus
        onInput={setText}
        onSend={send}
        onKey={command.key}
        onPasteLong={(long) => setLongTexts([...longTexts, long])}
        {...(canUpload && { onPasteFiles: uploads.add })}
      />
      <div class="composer-row">
        {canUpload && !isAnswer && <AttachButton uploads={uploads} accept={app.accept} />}
        {command.chosen !== null && (
          <button type="button" class="chip active" title={words.removeCommand} onClick={() => command.choose(null)}>
            <NamedIcon name={command.chosen.icon} label="" />/{command.chosen.id}
            <Icon name="cross" size={14} />
          </button>
        )}
        {chat.commands
          .filter(({ is_button, id }) => is_button && id !== command.chosen?.id)
          .map((each) => (
            <button
              key={each.id}
              type="button"
              class="chip"
              title={each.description}
              onClick={() => command.choose(each)}
            >
              <NamedIcon name={each.icon} label="" />
              {each.id}
            </button>
          ))}
        <Modes
          modes={chat.modes}
          values={modeValues}
          onChange={(mode, option) => setModeValues({ ...modeValues, [mode]: option })}
        />
        <span class="spacer" />
        {isRunning && (
          <button
            type="button"
            class="round stop"
            title={words.stop}
            aria-label={words.stop}
            onClick={() => client.stop()}
          >
            <Icon name="stop" />
          </button>
        )}
        {(!isRunning || !isEmpty) && (
          <button
            type="button"
            class="round send"
            title={words.send}
            aria-label={words.send}
            disabled={isEmpty || uploads.isBusy}
            onClick={send}
          >
            <Icon name="send" />
          </button>
        )}
      </div>
    </form>
  );
}

function placeholder(isAnswer: boolean, isRunning: boolean, hasEnded: boolean): string {
  if (isAnswer) return words.answerPlaceholder;
  if (isRunning) return words.queuePlaceholder;
  return hasEnded ? words.endedPlaceholder : words.messagePlaceholder;
}
