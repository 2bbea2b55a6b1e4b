import { useState } from "preact/hooks";
import { call, type Who } from "../api";
import { who } from "../store";
import { Button, Logo, Snippet } from "../ui";

export default function SignIn() {
  const [key, setKey] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    setError("");
    try {
      who.set(await call<Who>("POST", "/dashboard/session", { key: key.trim() }));
      setKey("");
    } catch (x) {
      setError((x as Error).message);
    }
    setBusy(false);
  };
  return (
    <main class="signin">
      <form onSubmit={submit}>
        <Logo />
        <h1>Sign in to Paddock</h1>
        <p>Use a key of this installation. It is exchanged for a short session and not kept.</p>
        <label for="key">Key</label>
        <input id="key" type="password" autocomplete="current-password" autofocus placeholder="pdk_…" value={key} spellcheck={false} onInput={(e) => setKey(e.currentTarget.value)} aria-describedby="key-error" aria-invalid={error ? true : undefined} />
        <div id="key-error" class="field-error" role="alert">
          {error}
        </div>
        <Button kind="primary" type="submit" busy={busy} disabled={!key.trim()}>
          Sign in
        </Button>
        <details>
          <summary>Where is my key?</summary>
          <p>The admin key is in the daemon’s data directory. On the machine it runs on:</p>
          <Snippet name="command that shows the key" text="sudo cat /var/lib/paddock/admin.key   # make run: var/lib/admin.key" />
          <p>Everybody else gets one of an admin, under Tenants &amp; keys.</p>
        </details>
      </form>
    </main>
  );
}
