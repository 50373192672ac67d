/** Short words that go by themselves, unless they tell of a mistake. */

import { useEffect } from "preact/hooks";
import { useClient, usePage } from "../client";
import type { ToastState } from "../state/page";
import { words } from "../words/words";
import { Icon } from "./Icon";

const SHOWN_MS: Readonly<Record<ToastState["kind"], number>> = {
  info: 5000,
  success: 4000,
  warning: 8000,
  error: 15_000,
};

export function Toasts() {
  const toasts = usePage((page) => page.toasts);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.map((toast) => (
        <ToastView key={toast.id} toast={toast} />
      ))}
    </div>
  );
}

function ToastView({ toast }: { readonly toast: ToastState }) {
  const client = useClient();
  useEffect(() => {
    const timer = setTimeout(() => client.dismiss(toast.id), SHOWN_MS[toast.kind]);
    return () => clearTimeout(timer);
  }, [toast.id]);
  return (
    <div class="toast" data-kind={toast.kind}>
      <span>{toast.text}</span>
      <button type="button" class="quiet icon-button" aria-label={words.close} onClick={() => client.dismiss(toast.id)}>
        <Icon name="cross" size={14} />
      </button>
    </div>
  );
}
