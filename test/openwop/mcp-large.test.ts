/** Owns: that runs with large values are told to clients of the MCP server in portions of a bounded size. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chain, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { callTool, openMcpWorld, type McpClient, type McpWorld } from "./mcp-world.ts";

const WORD = "x".repeat(90_000);
/** Characters of one page: the bound, and the event that goes beyond it. */
const PAGE_CHARS_MAX = 200_000 + 3 * WORD.length + 10_000;

let world: McpWorld;
beforeAll(async () => {
  const word = { inputs: { word: { type: "variable", variableName: "word" } } };
  const twice = { inputs: { ...word.inputs, again: word.inputs.word, more: word.inputs.word } };
  world = await openMcpWorld({
    definitions: [
      createWorkflow("wordy", {
        nodes: ["a", "b", "c", "d"].map((id) =>
          createNode(id, "core.identity", {}, id === "d" ? twice : word),
        ),
        edges: chain("a>b>c>d"),
        variables: { word: undefined },
      }),
      {
        ...createWorkflow("echo", { nodes: [createNode("only", "core.identity", {}, word)] }),
        variables: [{ name: "word", type: "object" }],
      },
    ],
  });
});
afterAll(() => world[Symbol.asyncDispose]());

async function readText({ client }: McpClient, uri: string): Promise<string> {
  const { contents } = await client.readResource({ uri });
  const [first] = contents as { readonly text: string }[];
  return first?.text ?? "";
}

interface Page {
  readonly events: readonly { readonly sequence: number }[];
  readonly isComplete: boolean;
  readonly next?: string;
}

/** Creates ten rows of so many zeros. */
const createRows = (length: number): unknown =>
  Array.from({ length: 10 }, () => Array.from({ length }, () => 0));

describe("a run with large values", () => {
  it("is told without its data, which the resource has", async () => {
    const client = await world.connect();
    const { text, data } = await callTool(client, "wordy", { word: WORD });
    expect(data).toEqual({});
    expect(text).toContain(
      "The data has more than the 200000 characters of one answer: read the run as a resource.",
    );
    const uri = `openwop://runs/${/run-[\w-]+/u.exec(text)?.[0] ?? ""}`;
    expect(JSON.parse(await readText(client, uri))).toMatchObject({
      outputs: { word: WORD, again: WORD, more: WORD },
    });
  });

  it.each([
    ["many small values", createRows(1_400)],
    ["one long text", "x".repeat(190_000)],
  ])("is told with its data where that has so many characters: %s", async (_words, value) => {
    const { data } = await callTool(await world.connect(), "echo", { word: { value } });
    expect(data).toMatchObject({ outputs: { word: { value } } });
  });

  it.each([
    ["many small values", createRows(3_000)],
    ["a text of signs that are written as six characters each", "\u0001".repeat(40_000)],
    ["a long text", "x".repeat(200_000)],
  ])("is told without its data where its text is longer: %s", async (_words, value) => {
    const { text, data } = await callTool(await world.connect(), "echo", { word: { value } });
    expect(data).toEqual({});
    expect(text.length).toBeLessThan(1_000);
  });

  it("has its log in pages of so many characters", async () => {
    const client = await world.connect();
    const { text } = await callTool(client, "wordy", { word: WORD });
    const runId = /run-[\w-]+/u.exec(text)?.[0] ?? "";
    const sequences: number[] = [];
    let next: string | undefined = `openwop://runs/${runId}/events?limit=1000`;
    let pages = 0;
    for (; next !== undefined; pages += 1) {
      const pageText = await readText(client, next);
      expect(pageText.length).toBeLessThan(PAGE_CHARS_MAX);
      const page = JSON.parse(pageText) as Page;
      sequences.push(...page.events.map(({ sequence }) => sequence));
      expect(page.isComplete).toBe(page.next === undefined);
      ({ next } = page);
    }
    expect(pages).toBeGreaterThan(2);
    const all = await world.ask(`/v1/runs/${runId}/events/poll?lastSequence=0`);
    expect(sequences).toEqual((all["events"] as Page["events"]).map(({ sequence }) => sequence));
  });
});
