/** Owns: installing the programs that the product is compared with, each in its own folder with its own lock file. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

export type Peer = "dbos" | "langgraph" | "openworkflow";

const TITLES: Readonly<Record<Peer, string>> = {
  dbos: "DBOS",
  langgraph: "LangGraph JS",
  openworkflow: "OpenWorkflow",
};

export function isInstalled(peer: Peer): boolean {
  return existsSync(`${folderOf(peer)}/node_modules/.package-lock.json`);
}

/** Installs what is missing and says once what could not be: its rows are left out then. */
export function installPeers(peers: readonly Peer[]): void {
  for (const peer of peers) {
    if (isInstalled(peer)) continue;
    process.stderr.write(`installing ${TITLES[peer]} to compare with ...\n`);
    const { status, stderr } = spawnSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
      cwd: folderOf(peer),
      encoding: "utf8",
    });
    if (status !== 0)
      process.stderr.write(
        `${TITLES[peer]} could not be installed, and its rows are left out: ${firstLineOf(stderr)}\n`,
      );
  }
}

function folderOf(peer: Peer): string {
  return fileURLToPath(new URL(peer, import.meta.url));
}

function firstLineOf(text: string | null): string {
  return text?.trim().split("\n")[0] ?? "npm did not run";
}
