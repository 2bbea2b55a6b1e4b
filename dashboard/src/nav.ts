/* The pages, for the navigation and the palette. */
import { call } from "./api";
import { stop, who } from "./store";

export interface Entry {
  path: string;
  title: string;
  icon: string;
  admin?: boolean;
  group: string;
}

export const PAGES: Entry[] = [
  { path: "", title: "Overview", icon: "home", group: "" },
  { path: "sandboxes", title: "Sandboxes", icon: "box", group: "" },
  { path: "workspaces", title: "Workspaces", icon: "disk", group: "" },
  { path: "images", title: "Images", icon: "image", group: "" },
  { path: "agents", title: "Agents", icon: "bot", group: "Agents" },
  { path: "approvals", title: "Approvals", icon: "stamp", group: "Agents" },
  { path: "transactions", title: "Transactions", icon: "swap", group: "Agents" },
  { path: "wallets", title: "Wallets", icon: "wallet", group: "Agents" },
  { path: "usage", title: "AI usage", icon: "spark", group: "Observe" },
  { path: "audit", title: "Audit", icon: "list", group: "Observe" },
  { path: "pool", title: "Pool", icon: "pool", admin: true, group: "Manage" },
  { path: "tenants", title: "Tenants & keys", icon: "users", admin: true, group: "Manage" },
  { path: "settings", title: "Settings", icon: "gear", admin: true, group: "Manage" },
  { path: "start", title: "Get started", icon: "play", group: "Manage" },
];

export async function signOut() {
  await call("DELETE", "/dashboard/session").catch(() => {});
  stop();
  sessionStorage.clear();
  who.set({ ...who.value!, signed_in: false });
}
