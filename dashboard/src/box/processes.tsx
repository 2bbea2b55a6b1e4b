import { useState } from "preact/hooks";
import { boxPath, call } from "../api";
import { bytes, plain } from "../format";
import type { TabProps } from "../pages/box";
import { attempt, useLoad } from "../store";
import { Ago, Button, Card, Dialog, Empty, Field, Shown, StatusBadge, Table } from "../ui";

interface Process {
  pid: number;
  tag: string | null;
  argv: string[];
  cwd: string;
  user: string;
  pty: boolean;
  running: boolean;
  started_at: string | null;
  exit: { exit_code: number; signal: string | null } | null;
  stdout_bytes: number;
  stderr_bytes: number;
}

function Logs({ box, pid, onClose }: { box: string; pid: number; onClose: () => void }) {
  const out = useLoad<{ stdout: { data: string; encoding: string }; stderr: { data: string; encoding: string } }>(`${boxPath(box)}/processes/${pid}/output`, 1500);
  const text = (p: { data: string; encoding: string }) => plain(p.encoding === "base64" ? new TextDecoder().decode(Uint8Array.from(atob(p.data), (c) => c.charCodeAt(0))) : p.data);
  return (
    <Dialog wide title={`Output of process ${pid}`} onClose={onClose}>
      <Shown of={out}>
        {(d) => (d.stdout.data || d.stderr.data ? <pre class="log" tabIndex={0}>{text(d.stdout)}{d.stderr.data && <span class="bad">{text(d.stderr)}</span>}</pre> : <p class="dim">It has written nothing yet.</p>)}
      </Shown>
    </Dialog>
  );
}

export default function Processes({ box }: TabProps) {
  const list = useLoad<{ processes: Process[] }>(`${boxPath(box.id)}/processes`, 2000);
  const [shown, setShown] = useState(0);
  const [command, setCommand] = useState("");
  const startOne = async (e: Event) => {
    e.preventDefault();
    if (await attempt(() => call("POST", `${boxPath(box.id)}/processes`, { command }), "Started")) setCommand("");
    list.reload();
  };
  const end = async (p: Process) => {
    await attempt(() => call("DELETE", `${boxPath(box.id)}/processes/${p.pid}`), "Ended");
    list.reload();
  };
  return (
    <>
      <form class="inline" onSubmit={startOne}>
        <Field label="Start a process">
          <input class="mono" value={command} placeholder="python3 -m http.server 8000" onInput={(e) => setCommand(e.currentTarget.value)} />
        </Field>
        <Button type="submit" disabled={!command.trim()}>Start</Button>
      </form>
      <Card flush>
        <Shown of={list}>
          {(d) =>
            d.processes.length === 0 ? (
              <Empty icon="list" title="No processes">Processes that were started through the API and outlive their client are listed here.</Empty>
            ) : (
              <Table
                name="Processes"
                id={(p) => p.pid}
                rows={d.processes}
                columns={[
                  { head: "PID", num: true, cell: (p) => p.pid },
                  { head: "Command", mono: true, wide: true, cell: (p) => <span class="clip" title={plain(p.argv.join(" "))}>{plain(p.tag ?? (p.pty ? "terminal" : p.argv.join(" ")))}</span> },
                  { head: "Status", cell: (p) => <StatusBadge status={p.running ? "running" : p.exit?.signal ? plain(p.exit.signal) : `exit ${p.exit?.exit_code ?? ""}`} /> },
                  { head: "User", hide: true, cell: (p) => plain(p.user) },
                  { head: "Output", num: true, hide: true, cell: (p) => bytes(p.stdout_bytes + p.stderr_bytes) },
                  { head: "Started", num: true, hide: true, cell: (p) => <Ago at={p.started_at} /> },
                  {
                    head: "",
                    cell: (p) => (
                      <div class="actions">
                        <Button small kind="ghost" onClick={() => setShown(p.pid)}>Output</Button>
                        {p.running && <Button small kind="ghost" icon="x" label={`End process ${p.pid}`} onClick={() => end(p)} />}
                      </div>
                    ),
                  },
                ]}
              />
            )
          }
        </Shown>
      </Card>
      {shown > 0 && <Logs box={box.id} pid={shown} onClose={() => setShown(0)} />}
    </>
  );
}
