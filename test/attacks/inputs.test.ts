import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import BetterSqlite3 from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PeerHosts } from "../../src/agents/coordination/ports/outbound.ts";
import { createPeerHosts } from "../../src/infra/peer/peer-hosts.ts";
import { createNamedPeers } from "../../src/infra/peer/named-peers.ts";
import { readOrCreateKey } from "../../src/infra/tokens/key-file.ts";
import { readHealth } from "../../src/infra/health/health-file.ts";
import { readJsonOrYaml } from "../../src/plugins/cli/files/read-json-or-yaml.ts";
import { formatJson } from "../../src/plugins/cli/terminal/printable.ts";
import { runCli } from "../cli/run-cli.ts";
import {
  replyJson,
  createUnendingSignal,
  PARENT,
  serve,
  createSteppingClock,
  testFetch,
} from "../contract/outbound-scene.ts";
import { createNoop, createNode, createWorkflow } from "../openwop/levels-workflows.ts";
import { filterByType, openWorld } from "../openwop/levels-world.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";
import { shortestOf } from "./longest-turn.ts";

const folder = createTempFolder();
afterAll(() => {
  folder[Symbol.dispose]();
});

/** Far above what any of them takes, far below what they took. */
const WITHIN_MS = 1_500;

async function loadText(name: string, text: string): Promise<string> {
  const file = folder.file(name);
  writeFileSync(file, text);
  const loaded = await readJsonOrYaml(file, "a plan");
  return loaded.ok ? "read" : loaded.problems.map(({ message }) => message).join("; ");
}

describe("a YAML file", () => {
  const KEY = /a key is a text, not a list, a map or an alias/;
  const DEEP = /nested too deeply/;

  it.each<[string, string, RegExp]>([
    ["maps as keys, opened and never closed", "{{".repeat(30), /Flow map|nested|key is a text/],
    ["maps as keys of maps as keys", `${"{? ".repeat(30)}a${"}".repeat(30)}`, KEY],
    ["keys that are asked for", `${"? ".repeat(30)}a`, KEY],
    ["a list as a key", "[a, b]: 1", KEY],
    ["a map as a key", "{a: 1}: 1", KEY],
    ["an alias as a key", "a: &a [1, 2]\n? *a\n: 1\n", KEY],
    ["a set of lists", "!!set {? [a], ? {b: c}}", KEY],
    ["lists beyond all depth", `${"[".repeat(900)}${"]".repeat(900)}`, DEEP],
    ["maps beyond all depth", `${"{a: ".repeat(100)}1${"}".repeat(100)}`, DEEP],
    ["a megabyte of brackets", "[".repeat(1_000_000), DEEP],
    ["a megabyte of lists in one line", "- ".repeat(500_000), DEEP],
    ["a megabyte of keys in one line", "? ".repeat(500_000), DEEP],
    ["members, each in the one before", nestMembers(100), DEEP],
  ])("with %s is refused at once", async (_what, text, refusal) => {
    let words = "";
    const heldMs = await shortestOf(2, async () => (words = await loadText("plan.yaml", text)));
    expect(words).toMatch(refusal);
    expect(heldMs).toBeLessThan(WITHIN_MS);
  });

  it("may be as deep as a plan, with aliases as values and brackets in texts", async () => {
    expect(await loadText("plan.yaml", nestMembers(60))).toBe("read");
    expect(await loadText("plan.yaml", `a: ${"[".repeat(59)}${"]".repeat(59)}`)).toBe("read");
    expect(
      await loadText("plan.yaml", `a: &a [1]\nb: *a\nc: "${"[".repeat(500)}"\n# ${"[".repeat(500)}`),
    ).toBe("read");
  });

  it("and a JSON file of a megabyte of brackets is refused at once", async () => {
    let words = "";
    const heldMs = await shortestOf(
      2,
      async () => (words = await loadText("plan.json", "[".repeat(1_000_000))),
    );
    expect(words).toMatch(DEEP);
    expect(heldMs).toBeLessThan(WITHIN_MS);
  });
});

function nestMembers(levels: number): string {
  return Array.from({ length: levels }, (_, level) => `${" ".repeat(level)}a:`).join("\n") + " 1";
}

describe("a file that is a pipe", () => {
  const pipe = folder.file("pipe.yaml");
  beforeAll(() => execFileSync("mkfifo", [pipe]));

  it.each([
    ["plan validate", ["plan", "validate", pipe, "--json"]],
    ["plan run", ["plan", "run", pipe, "--json"]],
    ["answer", ["answer", "co-1:escalation-1", "--file", pipe, "--json"]],
    ["plan graph", ["plan", "graph", pipe]],
  ])("is an error of %s, and nobody waits for its other end", async (_what, args) => {
    const { stdout, stderr, exitCode } = await runCli(args);
    expect(exitCode).not.toBe(0);
    expect(stdout + stderr).toMatch(/this is a pipe; name a plain file, or - for the standard input/);
  });

  it("is no ledger, no key and no record of the gateway's health", async () => {
    await expect(openTestLedger(pipe)).rejects.toThrow(/is a pipe, not a plain file/);
    await expect(openTestLedger(pipe, { mode: "read" })).rejects.toThrow(/is a pipe, not a plain file/);
    expect(() => readOrCreateKey(pipe)).toThrow(/is a pipe, not a plain file/);
    expect(readHealth(pipe)).toBeUndefined();
  });
});

describe("a ledger", () => {
  async function createLedgerAt(name: string): Promise<string> {
    const path = folder.file(name);
    await (await openTestLedger(path)).close();
    return path;
  }

  it("with a view that has no end in the place of a table is refused, and nothing hangs", async () => {
    const path = await createLedgerAt("view.sqlite");
    const database = new BetterSqlite3(path);
    database.exec("alter table event rename to old_event");
    database.exec(
      "create view event as with recursive more(sequence) as (select 0 union all select sequence + 1 from more) select * from more",
    );
    database.close();
    await expect(openTestLedger(path)).rejects.toThrow(/has the view event, which no ledger has/);
    const { stdout, exitCode } = await runCli(["list", "--ledger", path, "--json"]);
    expect([exitCode, JSON.parse(stdout)]).toMatchObject([1, { error: { code: "LEDGER_CORRUPT" } }]);
  });

  it("that others may write is theirs no more once it is opened for writing, and `doctor` says it before", async () => {
    const path = await createLedgerAt("open.sqlite");
    chmodSync(path, 0o666);
    const runDoctor = async (): Promise<string> => (await runCli(["doctor", "--ledger", path])).stdout;
    expect(await runDoctor()).toContain(`${path} may be written by other users (mode 666)`);
    await (await openTestLedger(path)).close();
    expect(statSync(path).mode & 0o022).toBe(0);
    expect(await runDoctor()).not.toContain("may be written by other users");
  });

  it("that others may read is theirs no more once it is opened for writing, nor is what SQLite puts beside it", async () => {
    const path = await createLedgerAt("readable.sqlite");
    chmodSync(path, 0o644);
    const store = await openTestLedger(path);
    const modes = [path, `${path}-wal`, `${path}-shm`].map((file) => statSync(file).mode & 0o777);
    expect(modes).toEqual([0o600, 0o600, 0o600]);
    await store.close();
  });

  it("whose write-ahead log is a link or a folder is refused, and `doctor` says it", async () => {
    const path = await createLedgerAt("wal.sqlite");
    mkdirSync(`${path}-wal`);
    await expect(openTestLedger(path)).rejects.toThrow(/wal\.sqlite-wal is a folder, not a plain file/);
    const { stdout } = await runCli(["doctor", "--ledger", path]);
    expect(stdout).toContain(`${path}-wal is a folder, not a plain file`);
  });
});

describe("the key of interrupt tokens", () => {
  it("that others may write is refused, and one that they may read is theirs no more", () => {
    const path = folder.file("key-a");
    readOrCreateKey(path);
    chmodSync(path, 0o666);
    expect(() => readOrCreateKey(path)).toThrow(
      /may be written by other users; name another path, or remove what is there/,
    );
    chmodSync(path, 0o644);
    readOrCreateKey(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("that is a link is refused, and nothing is written where it leads", () => {
    const target = folder.file("key-target");
    writeFileSync(target, "x".repeat(32));
    symlinkSync(target, folder.file("key-b"));
    expect(() => readOrCreateKey(folder.file("key-b"))).toThrow(
      /is a link; name another path, or remove what is there/,
    );
    expect(readFileSync(target, "utf8")).toBe("x".repeat(32));
  });

  it("is looked at by `doctor`", async () => {
    const path = folder.file("looked/ledger.sqlite");
    await (await openTestLedger(path)).close();
    symlinkSync(folder.file("nowhere"), folder.file("looked/interrupt-key"));
    expect((await runCli(["doctor", "--ledger", path])).stdout).toContain(
      "interrupt-key is a link to nothing",
    );
  });
});

describe("JSON on a terminal", () => {
  it("has no character that moves the cursor or reverses a line, and is the same value", () => {
    const harmful =
      "\u007f\u0080\u009b31m\u009f\u00ad\u061c\u200b\u200e\u202a\u202e\u2028\u2029\u2066\ufeff\u{e0001}\ue000";
    const value = { [harmful]: [harmful, { text: `a${harmful}b`, plain: "ä 漢 😀 \u001b[31m" }] };
    for (const indent of [undefined, 2]) {
      const text = formatJson(value, indent);
      expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/u);
      expect(text).toContain("ä 漢 😀");
      expect(JSON.parse(text)).toEqual(value);
    }
  });

  it("is so in what commands print, errors included", async () => {
    const { stdout } = await runCli([
      "show",
      "co-\u009b31m\u202e",
      "--ledger",
      folder.file("none.sqlite"),
      "--json",
    ]);
    expect(stdout).not.toMatch(/[\u007f-\u009f\p{Cf}]/u);
    const file = folder.file("bad.yaml");
    writeFileSync(file, '"a\u202e\u009b": 1\n"a\u202e\u009b": 2\n');
    const validated = await runCli(["plan", "validate", file, "--json"]);
    expect(validated.stdout).toContain("\\u202e\\u009b");
    expect(validated.stdout).not.toMatch(/[\u007f-\u009f\p{Cf}]/u);
  });
});

describe("a peer", () => {
  const request = {
    workflowId: "w",
    inputs: {},
    idempotencyKey: "k",
    parent: PARENT,
    signal: createUnendingSignal(),
  };

  function recordAskedPeers(): { readonly peers: PeerHosts; readonly urls: string[] } {
    const urls: string[] = [];
    const answer = (peerUrl: string): Promise<never> => {
      urls.push(peerUrl);
      return Promise.resolve({ kind: "asked" } as never);
    };
    const peers = { discover: answer, createRun: answer, snapshot: answer, awaitEnd: answer, cancel: answer };
    return {
      peers: createNamedPeers(peers, ["https://peer.example/openwop", "http://127.0.0.1:4100"]),
      urls,
    };
  }

  it.each([
    "https://other.example",
    "https://peer.example",
    "https://peer.example/",
    "https://peer.example/openwop/admin",
    "https://peer.example/openwop/../admin",
    "https://peer.example/openwop%2f..%2fadmin",
    "https://peer.example:8443/openwop",
    "http://peer.example/openwop",
    "https://peer.example.evil.example/openwop",
    "https://peer.example@evil.example/openwop",
    "https://evil.example/?https://peer.example/openwop",
    "http://127.0.0.1:4101",
    "http://127.0.0.1:4100/v1",
    "http://2130706433:4101",
    "http://169.254.169.254/latest/meta-data",
    "file:///etc/passwd",
    "peer.example/openwop",
    "",
  ])("that nobody named is asked nothing: %s", async (url) => {
    const { peers, urls } = recordAskedPeers();
    const refused = { kind: "refused", code: "address_not_allowed" };
    expect(await peers.discover(url, createUnendingSignal())).toMatchObject(refused);
    expect(await peers.createRun(url, request)).toMatchObject(refused);
    expect(await peers.snapshot(url, "r", createUnendingSignal())).toMatchObject(refused);
    expect(await peers.awaitEnd(url, "r", createUnendingSignal())).toMatchObject(refused);
    expect(await peers.cancel(url, "r", { signal: createUnendingSignal() })).toMatchObject(refused);
    expect(urls).toEqual([]);
  });

  it.each(["https://peer.example/openwop", "https://PEER.example:443/openwop/", "http://127.0.0.1:4100/"])(
    "that is named is asked, however its address is spelled: %s",
    async (url) => {
      const { peers, urls } = recordAskedPeers();
      await peers.discover(url, createUnendingSignal());
      expect(urls).toEqual([url]);
    },
  );

  it("that a run names in its inputs is reached only where the operator named it", async () => {
    const answering = await serve(replyJson(201, { runId: "r", status: "pending" }));
    const definitions = [
      createWorkflow("far", {
        nodes: [createNode("call", "core.subWorkflow", { config: { workflowId: "worker" } })],
        edges: [],
      }),
      createWorkflow("worker", { nodes: [createNoop("n")], edges: [] }),
    ];
    const world = await openWorld(definitions, { privateOrigins: [answering.url] });
    try {
      const runId = await world.client.start("far", { inputs: { peerUrl: answering.url } });
      const { error } = await world.client.until(runId, "failed", "completed");
      expect(error).toMatchObject({
        message: expect.stringMatching(/none that the operator named/) as string,
      });
      expect(filterByType(await world.client.events(runId), "run.failed")).toHaveLength(1);
      expect(answering.received).toEqual([]);
    } finally {
      await world.close();
    }
  });

  it.each([
    ["is deep beyond all bounds", "[".repeat(900_000)],
    ["is deep and closed", `${"[".repeat(400_000)}${"]".repeat(400_000)}`],
    ["has values beyond all bounds", `[${"0,".repeat(400_000)}0]`],
  ])("whose answer %s is one whose answer is not of the protocol", async (_what, text) => {
    const peer = await serve((response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(text);
    });
    const clock = createSteppingClock();
    const peers = createPeerHosts({ fetch: testFetch(clock), clock, charsMax: 1_000_000 });
    expect(await peers.snapshot(peer.url, "r", createUnendingSignal())).toMatchObject({ code: "malformed" });
  });

  it("that always has news is asked ten times a second at most", async () => {
    const news = 50;
    let sequence = 0;
    const peer = await serve((response, request) => {
      if (!request.path.includes("/events/poll")) {
        replyJson(200, { runId: "r", workflowId: "w", status: "completed" })(response, request);
        return;
      }
      const type = sequence === news ? "run.completed" : "node.started";
      const event = {
        eventId: `r:${sequence}`,
        runId: "r",
        sequence,
        type,
        payload: {},
        timestamp: "2026-01-01T00:00:00.000Z",
      };
      sequence += 1;
      replyJson(200, { events: [event], isComplete: sequence > news })(response, request);
    });
    const clock = createSteppingClock();
    const peers = createPeerHosts({ fetch: testFetch(clock), clock, charsMax: 1_000_000 });
    expect(await peers.awaitEnd(peer.url, "r", createUnendingSignal())).toMatchObject({ kind: "ended" });
    expect(clock.waits).toEqual(Array(news).fill(100));
  });
});
