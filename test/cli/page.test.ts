/** Owns: what `page` says of the gateway's answer. */
import { afterEach, expect, test, vi } from "vitest";
import { createOkAnswer, gatewayOf } from "./fake-gateway.ts";
import { createMemoryConfig, runCli } from "./run-cli.ts";

const ADDRESS = "http://127.0.0.1:18789/coordination/page/#link=secret";
const REMOTE_HINT = "This address is on the gateway's machine.";

afterEach(() => {
  vi.unstubAllEnvs();
});

const runPage = (gateway: object, ...more: string[]) =>
  runCli(["page", ...more], {
    gateway: gatewayOf(createOkAnswer({ address: ADDRESS, rights: ["read"] })).call,
    config: createMemoryConfig({ gateway }),
  });

test("prints the address, and that the link signs in once", async () => {
  const { stdout, stderr } = await runPage({});
  expect(stdout).toBe(`${ADDRESS}\nIt signs in once, within five minutes.\n`);
  expect(stderr).toBe("");
});

test("says that the address is on the machine of a remote gateway, and what to put in its place", async () => {
  const { stdout } = await runPage({ mode: "remote" });
  expect(stdout).toContain(REMOTE_HINT);
  expect(stdout).toContain("`page.hosts`");
  const json = await runPage({ mode: "remote" }, "--json");
  expect(JSON.parse(json.stdout)).toEqual({ ok: true, address: ADDRESS, rights: ["read"], remote: true });
});

test.each([
  ["wss://gateway.example:18789", {}, true],
  ["ws://127.0.0.1:28789", {}, true],
  ["ws://localhost:18789", { mode: "remote" }, false],
  [" ", { mode: "remote" }, true],
])(
  "goes by OPENCLAW_GATEWAY_URL, as OpenClaw does, before its configuration: %j %j",
  async (url, gateway, isRemote) => {
    vi.stubEnv("OPENCLAW_GATEWAY_URL", url);
    const { stdout } = await runPage(gateway);
    expect(stdout.includes(REMOTE_HINT)).toBe(isRemote);
  },
);

test("that is switched off says how it is switched on, and nothing of steps", async () => {
  const { call } = gatewayOf({
    ok: false,
    code: "REQUEST_REFUSED",
    message: "the page is switched off",
    details: { refusal: "PAGE_OFF" },
  });
  const { stderr, exitCode } = await runCli(["page"], { gateway: call });
  expect(exitCode).toBe(1);
  expect(stderr).toBe(
    "error REQUEST_REFUSED: the page is switched off. Set coordination.phase1.page.enabled to true in the plugin's configuration.\n",
  );
});
