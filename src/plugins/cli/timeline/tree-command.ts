/** Owns: `tree`. */
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import { withLedger } from "../ledger/open-ledger.ts";
import { findCoordination, readKeptText } from "../../reports/find-coordination.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { formatJson } from "../terminal/printable.ts";
import {
  runCommand,
  withExamples,
  withReaderOptions,
  writeJson,
  type ReaderOptions,
} from "../terminal/run-command.ts";
import { createInterruptibleWait } from "../terminal/waiting-line.ts";
import { renderAgentTree } from "./render-tree.ts";
import { readAgentTree, type AgentTree } from "../../reports/tree.ts";

const POLL_MS = 1_000;
/** Moves the cursor to the top left and clears what is there. */
const CLEAR = "\u001b[H\u001b[2J";

interface TreeOptions extends ReaderOptions {
  readonly watch?: boolean;
}

/**
 * Adds the command `tree`, which draws the owner, its children and theirs, and with `--watch` draws it again whenever
 * it changes.
 */
export function addTreeCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("tree"))
    .description("Draw the owner, its children and theirs, with what each used and cost")
    .argument("[id]", "its id or a unique prefix; the newest one when left out")
    .option(
      "--watch",
      "draw it again whenever it changes, until it ends or Ctrl-C; with --json a line each time",
    )
    .action((id: string | undefined, options: TreeOptions) =>
      runCommand(host, options, () =>
        withLedger(host, options, (reader) => showTree(host, reader, { id, options })),
      ),
    );
  withExamples(command, host, ["tree", "tree co-1f0c --watch", "tree co-1f0c --json"]);
}

interface TreeRequest {
  readonly id: string | undefined;
  readonly options: TreeOptions;
}

/** A tree of agents, with the objective of its coordination. */
interface TreePicture {
  readonly agents: AgentTree;
  readonly objective: string | null;
}

async function showTree(host: CliHost, reader: LedgerReader, { id, options }: TreeRequest): Promise<void> {
  const picture = await readPicture(host, reader, id);
  if (options.watch) await watchTree(host, reader, { first: picture, isJson: options.json ?? false });
  else if (options.json) await writeJson(host, createPictureJson(picture));
  else await host.stdout.write(`${renderPicture(host, picture)}\n`);
}

async function readPicture(
  host: CliHost,
  reader: LedgerReader,
  id: string | undefined,
): Promise<TreePicture> {
  const view = await findCoordination(reader, id);
  return {
    agents: await readAgentTree(reader, view, host.now()),
    objective: await readKeptText(reader, view.objective),
  };
}

function createPictureJson({ agents, objective }: TreePicture): object {
  return { ...agents, objective };
}

function renderPicture({ stdout }: CliHost, { agents, objective }: TreePicture): string {
  return renderAgentTree(agents, objective, stdout.terminal);
}

/** The tree that is watched, as it was first drawn. */
interface WatchedTree {
  readonly first: TreePicture;
  readonly isJson: boolean;
}

/** Shows every change, and on a terminal the passing of time, until the coordination ends or Ctrl-C. */
async function watchTree(host: CliHost, reader: LedgerReader, { first, isJson }: WatchedTree): Promise<void> {
  using waiting = (host.waiting ?? createInterruptibleWait)();
  const id: CoordinationId = first.agents.coordinationId;
  const isLive = host.stdout.terminal.isTTY && !isJson;
  let shown = "";
  let picture = first;
  while (!waiting.isInterrupted()) {
    const changeable = formatWithoutDurations(picture);
    const isNew = isLive || changeable !== shown;
    if (isNew && !(await host.stdout.write(formatFrame(host, picture, { isJson, isLive })))) return;
    shown = changeable;
    if (picture.agents.status !== "running") return;
    await waiting.pause(POLL_MS);
    picture = await readPicture(host, reader, id);
  }
}

/** Formats a picture so that two of them are equal where only time has passed between them. */
function formatWithoutDurations(picture: TreePicture): string {
  return JSON.stringify(picture, (key, value: unknown) => (key === "durationMs" ? undefined : value));
}

/** How a tree is put out. */
interface FrameStyle {
  readonly isJson: boolean;
  /** Drawn over what was there before. */
  readonly isLive: boolean;
}

function formatFrame(host: CliHost, picture: TreePicture, { isJson, isLive }: FrameStyle): string {
  if (isJson) return `${formatJson(createPictureJson(picture))}\n`;
  return isLive ? `${CLEAR}${renderPicture(host, picture)}\n` : `${renderPicture(host, picture)}\n\n`;
}
