import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readAgentResult } from "../../src/agents/coordination/runtime/workflow-host/agents/agent-result.ts";
import {
  dropTrailingSlashes,
  resolvePeerAddress,
  stripJsonFence,
} from "../../src/agents/coordination/std/foreign-text.ts";
import { createAjvOutputContract } from "../../src/infra/json-schema/ajv-output-contract.ts";
import { formatOpenWopBaseUrl } from "../../src/plugins/openclaw/openwop/openwop-address.ts";
import { listSourceFiles, SRC } from "../architecture/read-imports.ts";

/** Returns how long the work takes, in milliseconds. */
function measureMs(work: () => unknown): number {
  const startedAtMs = performance.now();
  work();
  return performance.now() - startedAtMs;
}

describe("a text in a fence", () => {
  it.each([
    ["```json\n{}\n```", "{}"],
    ["```\n{}\n```", "{}"],
    ['\n ```json \r\n\n {"a":\n1}\n\n ``` \n', '{"a":\n1}'],
    ["```json\n{}```", "{}"],
    ["```\n```", ""],
    ["```\n```\n```", "```"],
  ])("is what stands in the fence: %j", (text, bare) => {
    expect(stripJsonFence(text)).toBe(bare);
  });

  it.each([
    "",
    " {} ",
    "```",
    "``````",
    "```{}```",
    "```json {}\n```",
    "```yaml\na: 1\n```",
    "```json\n{}\n``",
    "``\n{}\n```",
    "Here it is:\n```json\n{}\n```",
    "```json\n{}\n```\nThat is it.",
  ])("is left as it is where it is no fence of JSON: %j", (text) => {
    expect(stripJsonFence(text)).toBe(text);
  });

  it("takes no longer than its length says", () => {
    const contract = createAjvOutputContract();
    const text = `\`\`\`${"\n".repeat(2_000)}x`;
    expect(measureMs(() => readAgentResult(contract, undefined, { text, finish: "stop" }))).toBeLessThan(50);
    expect(measureMs(() => stripJsonFence(`\`\`\`${"\n".repeat(1_000_000)}\`\`\`x`))).toBeLessThan(500);
  });
});

describe("slashes at the end of a text", () => {
  it.each([
    ["", ""],
    ["/", ""],
    ["///", ""],
    ["/a", "/a"],
    ["/a//b///", "/a//b"],
  ])("are dropped: %j", (text, short) => {
    expect(dropTrailingSlashes(text)).toBe(short);
  });

  it("take no longer than the length says", () => {
    const slashes = "/".repeat(100_000);
    expect(measureMs(() => dropTrailingSlashes(`${slashes}x`))).toBeLessThan(100);
    expect(measureMs(() => resolvePeerAddress(`https://a.example/${slashes}x`, ""))).toBeLessThan(500);
  });

  const PLACE = { config: {}, env: {} };

  it("of an operator's address take no longer either", () => {
    const baseUrl = `https://a.example${"/".repeat(100_000)}x`;
    expect(measureMs(() => formatOpenWopBaseUrl(baseUrl, PLACE))).toBeLessThan(100);
    expect(formatOpenWopBaseUrl("https://a.example/b//", PLACE)).toBe("https://a.example/b");
  });

  it("are dropped by no pattern, which tries again at each of them", () => {
    const files = listSourceFiles().filter((file) => file.endsWith(".ts"));
    const found = files.filter((file) =>
      readFileSync(join(SRC, file), "utf8").includes(String.raw`replace(/\/+$/`),
    );
    expect(found).toEqual([]);
  });
});
