/** Owns: `fork`: making a run out of the events of another one, through the host that runs it. */
import { z } from "zod";
import { CoordinationError, isCoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { CliHost, CommandGroup } from "./cli-host.ts";
import { resolveId, withLedger } from "./open-ledger.ts";
import { printable } from "./printable.ts";
import {
  oneOf,
  runCommand,
  wholeNumber,
  withExamples,
  withReaderOptions,
  writeJson,
  writeLines,
  type ReaderOptions,
} from "./run-command.ts";

interface ForkOptions extends ReaderOptions {
  readonly from?: string;
  readonly mode: string;
  readonly configurable?: string;
  readonly url: string;
  readonly token?: string;
}

const MODES = ["branch", "replay"] as const;
const ANSWER_MS = 30_000;

export function addFork(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("fork"))
    .description("Fork a workflow run at an event, through a running `serve` or gateway")
    .argument("<run>", "the id of a workflow run")
    .option("--from <sequence>", "the first event that is not the source's; of a replay 0 when left out")
    .option(
      "--mode <mode>",
      "branch goes on anew from there, replay derives the recorded run again",
      "branch",
    )
    .option("--configurable <json>", "options in place of the source's, for a branch")
    .option("--url <url>", "where the host answers", "http://127.0.0.1:4096")
    .option("--token <token>", "bearer token (default: OPENWOP_API_KEY)")
    .action((id: string, options: ForkOptions) => runCommand(host, options, () => fork(host, id, options)));
  withExamples(command, host, [
    "fork run-6f1c2f6e-... --from 12",
    `fork run-6f1c2f6e-... --from 12 --configurable '{"temperature":0}'`,
    "fork run-6f1c2f6e-... --mode replay --url http://127.0.0.1:18789/coordination/openwop",
  ]);
}

async function fork(host: CliHost, id: string, options: ForkOptions): Promise<void> {
  const mode = oneOf(options.mode, "--mode", MODES);
  if (mode === "branch" && options.from === undefined)
    throw new CoordinationError("INPUT_INVALID", "--from: a branch begins at an event; name its sequence");
  const body = { mode, ...fromOf(options), ...overlayOf(options) };
  await refuseCoordinations(host, id, options);
  const forked = await ask(options, `/v1/runs/${encodeURIComponent(id)}:fork`, body);
  if (options.json) await writeJson(host, forked);
  else {
    const runId = typeof forked["runId"] === "string" ? forked["runId"] : "?";
    const told = `${printable(runId, host.stdout.terminal.unicode)}  a ${mode} of ${printable(id, host.stdout.terminal.unicode)}`;
    await writeLines(host, [told, `See it with: ${host.program} runs ${runId}`]);
  }
}

function fromOf({ from }: ForkOptions): { fromSeq?: number } {
  if (from === undefined) return {};
  return { fromSeq: wholeNumber(from, { option: "--from", min: 0, max: Number.MAX_SAFE_INTEGER }) };
}

const configurableSchema = z.record(z.string(), z.json());

function overlayOf({ configurable }: ForkOptions): { runOptionsOverlay?: object } {
  if (configurable === undefined) return {};
  const parsed = configurableSchema.safeParse(jsonIn(configurable));
  if (parsed.success) return { runOptionsOverlay: { configurable: parsed.data } };
  throw new CoordinationError("INPUT_INVALID", "--configurable: expected a JSON object");
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Their agents' sessions cannot be forked: the host has no copy of one as it was. */
async function refuseCoordinations(host: CliHost, id: string, options: ForkOptions): Promise<void> {
  const isCoordination = await withLedger(
    host,
    options,
    async (reader) => (await resolveId(reader, id)) !== "",
  ).catch((error: unknown) => {
    if (isCoordinationError(error)) return false;
    throw error;
  });
  if (isCoordination)
    throw new CoordinationError(
      "INPUT_INVALID",
      `${id} is a coordination, and those cannot be forked: the sessions of its agents have no state to go back to; \`${host.program} replay ${id} --from N --policy FILE\` tells what would have been decided`,
    );
}

/** The advice of these codes is for the gateway. */
class ForkError extends CoordinationError {
  override get advice(): string {
    return this.code === "GATEWAY_UNREACHABLE"
      ? "Start `openclaw-coordination serve`, or say with --url where the host answers."
      : "Run `openclaw coordination runs RUN` to see the events of the run; docs/openwop.md says what can be forked.";
  }
}

const refusalSchema = z.object({ error: z.string(), message: z.string() });

async function ask(
  { url, token = process.env["OPENWOP_API_KEY"] }: ForkOptions,
  path: string,
  body: object,
): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(`${url.replace(/\/+$/, "")}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER_MS),
    redirect: "error",
  }).catch((cause: unknown) => {
    throw new ForkError("GATEWAY_UNREACHABLE", `no OpenWOP host answers at ${url}`, { cause });
  });
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok && typeof answer === "object" && answer !== null) return { ...answer };
  const refusal = refusalSchema.safeParse(answer);
  const why = refusal.success
    ? `${refusal.data.message} (${refusal.data.error})`
    : `status ${response.status}`;
  throw new ForkError("REQUEST_REFUSED", `the host refused: ${why}`);
}
