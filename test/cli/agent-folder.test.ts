/** Owns: which packs of agents are installed, and that nothing outside of a pack is read for one. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readAgentFolder } from "../../src/plugins/cli/files/agent-folder.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

let folder: ReturnType<typeof createTempFolder>;
beforeEach(() => {
  folder = createTempFolder();
});
afterEach(() => folder[Symbol.dispose]());

function write(path: string, content: string | object): void {
  const file = join(folder.path, "agents", path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
}

const read = () => readAgentFolder(join(folder.path, "agents"));

const createManifest = (more: object = {}) => ({
  agentId: "vendor.acme.writer",
  persona: "Writer",
  modelClass: "writing",
  systemPromptRef: "prompts/w.md",
  ...more,
});
const pack = (...agents: readonly object[]) => ({ name: "vendor.acme", version: "1.0.0", agents });

describe("a folder of agents", () => {
  it("has packs, whose prompts and schemas are read from their files", async () => {
    write("acme/pack.json", {
      ...pack(
        createManifest({ handoff: { taskSchemaRef: "schemas/t.json", returnSchemaRef: "schemas/r.json" } }),
      ),
      peerDependencies: { memory: "*" },
    });
    write("acme/prompts/w.md", "Write well.\n");
    write("acme/schemas/t.json", { type: "object" });
    write("acme/schemas/r.json", { type: "string" });
    expect(await read()).toEqual([
      {
        packName: "vendor.acme",
        packVersion: "1.0.0",
        systemPrompt: "Write well.\n",
        taskSchema: { type: "object" },
        returnSchema: { type: "string" },
        manifest: {
          ...createManifest({
            handoff: { taskSchemaRef: "schemas/t.json", returnSchemaRef: "schemas/r.json" },
          }),
          requiresCapabilities: ["memory"],
        },
      },
    ]);
  });

  it("is, as an example, that of this repository", async () => {
    const [triage, ...others] = await readAgentFolder(join(import.meta.dirname, "../../examples/agents"));
    expect(others).toEqual([]);
    expect(triage).toMatchObject({
      packName: "community.support",
      manifest: { agentId: "community.support.triage" },
      returnSchema: { required: ["team", "urgency"] },
    });
    expect(triage?.systemPrompt).toContain("confidence");
  });

  it("has single manifests, as JSON or YAML, beside them", async () => {
    write(
      "one.json",
      createManifest({ agentId: "vendor.acme.one", systemPromptRef: undefined, systemPrompt: "One." }),
    );
    write("two.yaml", "agentId: vendor.acme.two\npersona: Two\nmodelClass: coding\nsystemPrompt: Two.\n");
    write("README.md", "not an agent");
    const agents = await read();
    expect(agents.map(({ manifest: { agentId } }) => agentId)).toEqual([
      "vendor.acme.one",
      "vendor.acme.two",
    ]);
  });

  it.each([
    ["leads out of the pack", { systemPromptRef: "../secret.md" }],
    ["leads out of the pack", { systemPromptRef: "prompts/../../secret.md" }],
    ["leads out of the pack", { systemPromptRef: "%2e%2e/secret.md" }],
    ["leads out of the pack", { systemPromptRef: "/etc/passwd" }],
    ["leads out of the pack", { systemPromptRef: "file:///etc/passwd" }],
    ["leads out of the pack", { systemPromptRef: "linked.md" }],
    ["leads out of the pack", { systemPromptRef: "linked/secret.md" }],
    ["is not there", { systemPromptRef: "prompts/nothing.md" }],
    ["is empty", { systemPromptRef: "empty.md" }],
    ["has more than", { systemPromptRef: "huge.md" }],
    ["is no JSON", { systemPromptRef: "prompts/w.md", handoff: { taskSchemaRef: "prompts/w.md" } }],
    ["is no JSON Schema", { systemPromptRef: "prompts/w.md", handoff: { returnSchemaRef: "list.json" } }],
    [
      "handoff.taskSchemaRef: typo.json is not a usable JSON Schema: properties.n.type: type must be",
      { systemPromptRef: "prompts/w.md", handoff: { taskSchemaRef: "typo.json" } },
    ],
    [
      "handoff.returnSchemaRef: typo.json is not a usable JSON Schema: properties.n.type: type must be",
      { systemPromptRef: "prompts/w.md", handoff: { returnSchemaRef: "typo.json" } },
    ],
    ["is not there", { systemPromptRef: "prompts/w.md", evalSuiteRef: "evals/none.json" }],
  ])("is refused where a reference %s: %o", async (why, more) => {
    write("../secret.md", "CANARY-SECRET");
    write("acme/pack.json", pack(createManifest(more)));
    write("acme/prompts/w.md", "Write well.");
    write("acme/empty.md", " ");
    write("acme/huge.md", "x".repeat(300_000));
    write("acme/list.json", "[]");
    write("acme/typo.json", { properties: { n: { type: "strng" } } });
    symlinkSync(join(folder.path, "secret.md"), join(folder.path, "agents/acme/linked.md"));
    symlinkSync(folder.path, join(folder.path, "agents/acme/linked"));
    const error = await read().then(
      () => undefined,
      (thrown: unknown) => thrown as Error,
    );
    expect(error?.message).toContain(why);
    expect(error?.message).toContain("acme: agent vendor.acme.writer");
    expect(error?.message).not.toContain("CANARY-SECRET");
  });

  it("is refused as a whole, with every pack that is wrong and why", async () => {
    write("acme/prompts/w.md", "Write well.");
    write("acme/pack.json", pack(createManifest()));
    write("broken/pack.json", "{");
    write("empty/notes.md", "no pack");
    write("wrong/pack.json", pack({ agentId: "writer" }));
    write("other/pack.json", pack(createManifest({ agentId: "vendor.acmes.writer" })));
    write("other/prompts/w.md", "Write well.");
    const error = await read().then(
      () => "nothing was wrong",
      (thrown: unknown) => (thrown as Error).message,
    );
    expect(error).toContain("broken: line 1, column 2: Expected property name");
    expect(error).toMatch(/empty: there is no pack\.json in it/u);
    expect(error).toMatch(/wrong: agents\[0\]/u);
    expect(error).toContain("other: agents[0]: agentId: expected a name below vendor.acme.");
    expect(error).not.toContain("acme:");
  });

  it("is refused where two packs have the same agent", async () => {
    for (const name of ["one", "two"]) {
      write(`${name}/pack.json`, pack(createManifest()));
      write(`${name}/prompts/w.md`, "Write.");
    }
    await expect(read()).rejects.toThrow("two: there is another agent vendor.acme.writer");
  });

  it("is refused where it is not there", async () => {
    await expect(read()).rejects.toThrow("there is no such folder");
  });
});

describe("a slip in the syntax", () => {
  it.each([
    ["a pack", "acme/pack.yaml", "acme"],
    ["a manifest", "writer.yaml", "writer.yaml"],
  ])("of %s is named with its line and column", async (_, path, entry) => {
    write(path, "name: vendor.acme\nagents: [\n");
    await expect(read()).rejects.toThrow(new RegExp(String.raw`\n {2}${entry}: line \d+, column \d+: `, "u"));
  });
});
