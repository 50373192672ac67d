/** The way in, where an app wants to know who somebody is. */

import { useState } from "preact/hooks";
import { absolute } from "../address";
import { useClient, usePage } from "../client";
import type { Problem } from "../protocol";
import { words } from "../words/words";
import "./login.css";

export function Login() {
  const auth = usePage((page) => page.auth);
  const ways = auth?.ways ?? [];
  return (
    <main class="login">
      <div class="login-card">
        <span class="seal" aria-hidden="true">
          会
        </span>
        <h1>{words.logIn}</h1>
        {ways.some(({ kind }) => kind === "password") && <PasswordForm />}
        {ways
          .filter(({ kind }) => kind === "oauth")
          .map((way) => (
            <a key={way.id} class="chip strong" href={absolute(way.url ?? ".")}>
              {words.logInWith(way.name)}
            </a>
          ))}
      </div>
    </main>
  );
}

function PasswordForm() {
  const client = useClient();
  const [problem, setProblem] = useState("");
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const body = JSON.stringify({ username: form.get("username"), password: form.get("password") });
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(absolute("api/login"), { method: "POST", headers, body }).catch(() => null);
    if (answer?.ok === true) return client.loggedIn();
    const told = (await answer?.json().catch(() => null)) as Problem | null | undefined;
    setProblem(answer === null ? words.reconnecting : (told?.message ?? words.wrongLogin));
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <label>
        {words.username}
        <input class="line-field" name="username" autocomplete="username" required />
      </label>
      <label>
        {words.password}
        <input class="line-field" name="password" type="password" autocomplete="current-password" required />
      </label>
      {problem !== "" && (
        <p class="state failed" role="alert">
          {problem}
        </p>
      )}
      <button type="submit" class="primary">
        {words.logIn}
      </button>
    </form>
  );
}
