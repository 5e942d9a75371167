/** P23: results that flood the parent's context, and what its model is sent of them, however long they are. */
import { createHash } from "node:crypto";
import { expect } from "vitest";
import type { Json } from "../support/gateway.ts";
import { writeLongText, type LongText } from "../support/long-text.ts";
import { isAnnounce, renderScript, textOf, type RecordedRequest } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { hasEnded, stepNamed, type OpenedCoordination, type Stage } from "../e2e/stage.ts";
import { factsOf, ownerOf } from "../e2e/writes-stage.ts";
import type { Pair } from "./pair.ts";
import { WAIT_MS_MAX } from "./story-parts.ts";

const PARENT_CHARS_MAX = 16_000;

interface Flood extends LongText {
  readonly label: string;
}

const floodOf = (label: string, chars: number, lineChars?: number): Flood => ({
  label,
  chars,
  head: `BEGIN-${label} `,
  middle: ` MIDDLE-${label} `,
  tail: ` END-${label}`,
  ...(lineChars !== undefined && { lineChars }),
});

/** In small letters: the host names sessions so. */
const FLOODS: readonly Flood[] = [
  floodOf("flood-1kb", 1_000, 80),
  floodOf("flood-100kb", 100_000, 80),
  floodOf("flood-10mb", 10_000_000, 80),
  floodOf("flood-10mb-line", 10_000_000),
];

function spawn({ gateway }: Stage, { label, ...sayLong }: Flood, fields: Json = {}): Promise<unknown> {
  const child = { label, task: renderScript({ sayLong }), ...fields };
  return gateway.agent({
    sessionKey: ownerOf(label),
    message: renderScript({ spawn: [child] }, { say: "spawned" }),
  });
}

/** The request that told the parent the result, and everything that its session had then. */
function waitUntilTold({ model }: Stage, { head }: Flood): Promise<RecordedRequest> {
  const isTold = ({ body }: RecordedRequest): boolean =>
    body.messages.some((message) => isAnnounce(textOf(message)) && textOf(message).includes(head));
  return waitFor(() => model.requests.find(isTold), {
    what: `the result of ${head}`,
    timeoutMs: WAIT_MS_MAX,
  });
}

/** How much of a request are words of the child: what else is there is the host's, and the same for every child. */
const findLongest = ({ body }: RecordedRequest): number =>
  Math.max(...body.messages.filter(({ role }) => role !== "system").map((message) => textOf(message).length));

/** The result that a session's model reads when it calls a tool. */
async function callTool(
  { gateway, model }: Stage,
  label: string,
  call: { name: string; args: Json },
): Promise<string> {
  const say = `called ${call.name} at ${model.requests.length}`;
  await gateway.agent({ sessionKey: ownerOf(label), message: renderScript({ call: [call] }, { say }) });
  const request = model.requests.findLast(({ turn }) => turn.say === say);
  return textOf(request?.body.messages.findLast(({ role }) => role === "tool") ?? { role: "" });
}

async function readResult(stage: Stage, label: string, args: Json = {}): Promise<Json> {
  return JSON.parse(await callTool(stage, label, { name: "coordination_result", args })) as Json;
}

const endOf = (stage: Stage, label: string): Promise<OpenedCoordination> =>
  stage.until(ownerOf(label), hasEnded, WAIT_MS_MAX);

const placeOf = (state: OpenedCoordination, label: string): Json => ({
  coordinationId: state.coordinationId,
  stepId: stepNamed(state, label).spec.stepId,
});

/** P23: results of 1 kB to 10 MB, in lines and in one line. */
export async function tellFloods(pair: Pair): Promise<void> {
  const sent: Record<string, { readonly plain: number; readonly coordinated: number }> = {};
  for (const flood of FLOODS) {
    for (const stage of [pair.plain, pair.coordinated]) await spawn(stage, flood);
    sent[flood.label] = {
      plain: findLongest(await waitUntilTold(pair.plain, flood)),
      coordinated: findLongest(await waitUntilTold(pair.coordinated, flood)),
    };
  }
  console.info("the longest message that the parent's model was sent", sent);
  for (const { label, chars } of FLOODS) {
    const { plain = 0, coordinated = 0 } = sent[label] ?? {};
    // The host hands on all of it, twice.
    expect(plain).toBeGreaterThan(chars);
    // Its own words around a result, and what its escapes add to short lines.
    expect(coordinated).toBeLessThan(PARENT_CHARS_MAX * 1.1 + 4_000);
  }
}

/** The result of 100 kB that `tellFloods` left is whole in the ledger, and its parent reads and searches it. */
export async function readLongResult({ coordinated }: Pair): Promise<void> {
  const [, flood] = FLOODS;
  if (!flood) return;
  const { label } = flood;
  const whole = writeLongText(flood);
  const sha256 = createHash("sha256").update(whole).digest("hex");
  const state = await endOf(coordinated, label);
  const announcement = (await waitUntilTold(coordinated, flood)).text;
  expect(announcement).toContain(flood.tail);
  expect(announcement).not.toContain(flood.middle);
  expect(announcement).toContain(`shortened from ${whole.length} characters, sha256 ${sha256}`);
  expect(factsOf(await coordinated.events(state), "result.shortened")).toEqual([
    expect.objectContaining({ chars: whole.length, text: { sha256, bytes: Buffer.byteLength(whole) } }),
  ]);

  const place = placeOf(state, label);
  expect((await readResult(coordinated, label))["results"]).toEqual([
    expect.objectContaining({ ...place, kind: "text", sha256 }),
  ]);
  let read = "";
  for (let from: unknown = 0; from !== undefined;) {
    const page = await readResult(coordinated, label, { ...place, from, chars: 16_000 });
    read += String(page["text"]);
    from = page["next"];
  }
  expect(read).toBe(whole);
  const found = await readResult(coordinated, label, { ...place, find: flood.middle.trim() });
  expect(found["matches"]).toEqual([
    { at: whole.indexOf(flood.middle) + 1, around: expect.any(String) as string },
  ]);

  const other = await readResult(coordinated, "flood-nobody", place);
  expect(other).toMatchObject({
    status: "error",
    message: expect.stringMatching(/belongs to this session/u) as string,
  });
  expect(await coordinated.verify()).toMatchObject({ ok: true, problems: [] });
}

/** A result of 1 MB that the parent collects, and reads in the transcript of its child. */
export async function collectLongResult({ coordinated }: Pair): Promise<void> {
  const flood = floodOf("flood-collected", 1_000_000, 80);
  const { label } = flood;
  await spawn(coordinated, flood, { collect: true });
  const state = await endOf(coordinated, label);
  const { phase } = stepNamed(state, label);
  const child = "child" in phase ? phase.child : undefined;
  const collected = await callTool(coordinated, label, {
    name: "agents_wait",
    args: { ids: [child?.childRunId] },
  });
  const history = await callTool(coordinated, label, {
    name: "sessions_history",
    args: { sessionKey: child?.childSessionKey },
  });
  for (const read of [collected, history]) {
    expect(read).toContain(flood.head);
    expect(read.length).toBeLessThan(PARENT_CHARS_MAX * 1.1 + 4_000);
  }
  expect(
    await readResult(coordinated, label, { ...placeOf(state, label), find: flood.middle.trim() }),
  ).toMatchObject({
    matches: [{ around: expect.stringContaining("lorem") as string }],
  });
}
