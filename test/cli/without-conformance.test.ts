/** Owns: an installation whose conformance play is absent: everything else works, and what needs it says that it is absent. */
import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { createTempFolder } from "../support/temp-ledger.ts";

const ROOT = new URL("../../", import.meta.url);

/** Makes every import of the folder fail as it does where it is not installed. */
const HIDE_PLAY = `
import { registerHooks } from "node:module";
registerHooks({
  resolve: (specifier, context, next) => {
    const found = next(specifier, context);
    if (!found.url.includes("/openwop/conformance/")) return found;
    throw Object.assign(new Error("Cannot find module " + found.url), { code: "ERR_MODULE_NOT_FOUND" });
  },
});
`;

const PROBE = `
const { startServedOpenWop } = await import("./src/plugins/serve-openwop.ts");
const [ledgerPath] = process.argv.slice(1);
const noop = { id: "w", name: "w", version: "1", nodes: [{ id: "n", typeId: "core.noop", config: {}, inputs: {} }], edges: [], variables: [], settings: {} };
const serving = {
  ledgerPath, definitions: [noop], version: "0", port: 0, hostname: "127.0.0.1", tokens: [{ tenant: "t", token: "token" }],
  allowRemote: false, testSeams: false, verbose: false, confidenceFloor: 0.5, escalationThreshold: 0.7, privateOrigins: [],
  peerTokens: {}, log: () => undefined,
};
const served = await startServedOpenWop(serving);
const headers = { authorization: "Bearer token", "content-type": "application/json" };
const created = await fetch(served.baseUrl + "/v1/runs", { method: "POST", headers, body: '{"workflowId":"w"}' });
await served.stop();
const tested = await startServedOpenWop({ ...serving, testSeams: true }).then(() => "served", ({ code, message }) => ({ code, message }));
console.log(JSON.stringify({ status: created.status, tested }));
`;

describe("an installation without the conformance play", () => {
  test("serves runs, and refuses --test-seams with a sentence", () => {
    using folder = createTempFolder();
    const hide = `data:text/javascript,${encodeURIComponent(HIDE_PLAY)}`;
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ["--import", hide, "--input-type=module", "--eval", PROBE, folder.file("runs.sqlite")],
      { cwd: ROOT, encoding: "utf8" },
    );
    expect(stderr).not.toContain("Error");
    expect(JSON.parse(stdout)).toEqual({
      status: 201,
      tested: {
        code: "INPUT_INVALID",
        message: expect.stringMatching(/^this installation lacks the conformance play/u) as string,
      },
    });
  });
});
