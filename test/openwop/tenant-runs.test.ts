import { expect, it } from "vitest";
import type { McpDependencies } from "../../src/plugins/mcp/mcp-tool.ts";
import { listRunResources } from "../../src/plugins/mcp/run-resources.ts";

const ENTRIES = 10_600;
const NEWER = 10_500;

const entries = Array.from({ length: ENTRIES }, (_, index) => ({
  ordinal: ENTRIES - index,
  runId: `run-${index}`,
  summary: { tenant: index < NEWER ? "noisy" : "miners", workflowId: "dig", status: "completed" },
}));

const list = ({ limit, after }: { limit: number; after?: { ordinal: number } }): Promise<typeof entries> =>
  Promise.resolve(
    entries.filter(({ ordinal }) => ordinal < (after?.ordinal ?? Number.MAX_SAFE_INTEGER)).slice(0, limit),
  );

it("the resources of a tenant are reached page by page behind 10,000 newer runs of others", async () => {
  const dependencies = { runs: { list } } as unknown as McpDependencies;
  const found = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = await listRunResources(dependencies, { tenant: "miners", principal: "ann" }, cursor);
    for (const { uri } of page?.resources ?? []) found.add(uri);
    cursor = page?.nextCursor;
  } while (cursor !== undefined);
  expect(found.size).toBe(ENTRIES - NEWER);
});
