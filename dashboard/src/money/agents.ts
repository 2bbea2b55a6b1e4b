/* Agents, as the contract describes them. */
import { call } from "../api";
import { attempt } from "../store";

export type AgentStatus = "waiting" | "building" | "failed" | "stopped" | "starting" | "running" | "stopping" | "crashed";

export interface Manifest {
  name: string;
  version: string;
  description?: string;
  author?: string;
  runtime: string;
  entrypoint: string;
  permissions?: { chains?: string[]; rpcs?: Record<string, string>; apis?: string[]; contracts?: string[]; hosts?: string[] };
  resources?: { memory?: string; cpu?: string };
  spending_limits?: { per_transaction?: string; daily?: string; weekly?: string; monthly?: string };
}

export interface Agent {
  id: string;
  name: string;
  tenant: string;
  status: AgentStatus;
  reason: string | null;
  sandbox: string | null;
  consented_by: string;
  crashes: number;
  created_at: string;
  started_at: string | null;
  next_start_at: string | null;
  manifest: Manifest;
}

export interface LogEntry {
  id: number;
  at: string;
  level: "debug" | "info" | "success" | "warn" | "error";
  source: string;
  message: string;
  data: unknown;
}

export const LEVELS = ["debug", "info", "success", "warn", "error"] as const;
export const agentPath = (id: string) => `/v1/agents/${encodeURIComponent(id)}`;

export type AgentVerb = "start" | "stop" | "restart";
export const MAY: Record<AgentVerb, (a: Agent) => boolean> = {
  start: (a) => a.status === "stopped",
  stop: (a) => ["starting", "running", "crashed"].includes(a.status),
  restart: (a) => ["running", "crashed"].includes(a.status),
};
const DONE: Record<AgentVerb, string> = { start: "started", stop: "stopped", restart: "restarted" };

export const actOn = (a: Agent, verb: AgentVerb) => attempt(() => call<Agent>("POST", `${agentPath(a.id)}/${verb}`), `The agent was ${DONE[verb]}`);
