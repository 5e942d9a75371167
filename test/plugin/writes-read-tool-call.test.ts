import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { isToolWatched, readToolCall } from "../../src/plugins/openclaw/writes/read-tool-call.ts";
import {
  parseConflicts,
  FOLDER,
  createPatch,
  readCall,
  showReading,
  createToolCall,
} from "./writes-calls.ts";

const UNREADABLE = { undetermined: { because: "unreadable" } };
const UNDECLARED = { undetermined: { because: "undeclared" }, mayTouchAnything: true, folder: FOLDER };

describe("a tool that nobody watches", () => {
  it.each(["web_search", "constructor", "__proto__", "toString", ""])("is not read: %s", async (tool) => {
    const params = { path: "a", content: "b" };
    expect(isToolWatched(createToolCall(tool, params))).toBe(false);
    expect(await readCall(tool, params)).toBeUndefined();
  });

  it("has its parameters not looked at", async () => {
    const params = new Proxy({}, { ownKeys: () => expect.unreachable(), get: () => expect.unreachable() });
    expect(await readCall("web_search", params)).toBeUndefined();
  });
});

describe("the path of a file tool", () => {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "writes-"));
    writeFileSync(join(folder, "@lit.txt"), "");
    mkdirSync(join(folder, "@dir"));
  });
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  const pathOf = async (tool: string, params: object): Promise<unknown> => {
    const read = await readCall(tool, params, { folder });
    const at = read?.targets[0]?.at ?? read?.reads[0];
    return at && "path" in at ? at.path.replace(folder, ".") : read?.undetermined;
  };

  it.each([
    ["a.txt", "./a.txt"],
    ["sub/../b.txt", "./b.txt"],
    ["/etc/../x", "/x"],
    ["~", homedir()],
    ["~/x", `${homedir()}/x`],
    ["~x", "./~x"],
    ["@a.txt", "./a.txt"],
    ["@@a.txt", "./@a.txt"],
    ["@/x", "/x"],
    ["@~/x", `${homedir()}/x`],
    ["@lit.txt", "./@lit.txt"],
    ["@dir/new.txt", "./@dir/new.txt"],
    ["nb\u00a0sp", "./nb\u00a0sp"],
  ])("is taken as the host takes it: %s", async (path, file) => {
    expect(await pathOf("write", { path, content: "" })).toBe(file);
    expect(await pathOf("edit", { path, edits: [] })).toBe(file);
    expect(await pathOf("read", { path })).toBe(file);
    expect(await pathOf("apply_patch", createPatch(`*** Delete File: ${path}`))).toBe(file);
  });

  it.each([
    ["file:///x%20y", "/x y", "./file:/x%20y"],
    ["file://host/x", "./file:/host/x", "./file:/host/x"],
    ["a</arg_value>>", "./a", "./a</arg_value>>"],
    ["a</arg_value>", "./a</arg_value>", "./a</arg_value>"],
    ["a.docodex", "./a.docx", "./a.docodex"],
    ["a.XLSxcodex", "./a.xlsx", "./a.XLSxcodex"],
  ])("is mended by the file tools, and not in a patch: %s", async (path, file, patched) => {
    expect(await pathOf("write", { path, content: "" })).toBe(file);
    expect(await pathOf("apply_patch", createPatch(`*** Delete File: ${path}`))).toBe(patched);
  });

  it.each([[{ content: "" }], [{ path: " ", content: "" }], [{ path: 5, content: "" }], [{ path: "a" }]])(
    "is needed, as is the content: %j",
    async (params) => {
      expect(showReading(await readCall("write", params))).toEqual({ targets: [], reads: [], ...UNREADABLE });
    },
  );
});

describe("a recording of a device", () => {
  it("changes the file that the call names, if it names one", async () => {
    const read = await readCall("nodes", { action: "screen_record", outPath: "out.mp4" });
    expect(showReading(read)).toEqual({ targets: [["out.mp4", true]], reads: [] });
    expect(await readCall("nodes", { action: "status" })).toBeUndefined();
  });
});

describe("a shell command", () => {
  const config = parseConflicts({
    commands: [
      { command: "npm run build", outputs: ["dist", "~/cache"] },
      { command: "git status*", outputs: [] },
      { command: "make * > *", outputs: ["out.txt"] },
      { command: "make *", outputs: ["/out"] },
      { command: "ls*s", outputs: [] },
    ],
  });
  const readExec = async (params: object) => showReading(await readCall("exec", params, { config }));
  const nothing = { targets: [], reads: [], mayTouchAnything: true, folder: FOLDER };

  it("changes what an operator declared, in its working directory", async () => {
    const params = { command: " npm run build ", workdir: "packages/../web" };
    const read = await readCall("exec", params, { config });
    expect(read).toEqual({
      targets: [
        { at: { path: "dist", folder: `${FOLDER}/packages/../web` }, replaces: true },
        { at: { path: `${homedir()}/cache`, folder: `${FOLDER}/packages/../web` }, replaces: true },
      ],
      reads: [],
      mayTouchAnything: true,
      folder: FOLDER,
    });
    const [target] = (await readCall("bash", { command: "npm run build" }, { config }))?.targets ?? [];
    expect(target?.at).toEqual({ path: "dist", folder: FOLDER });
    const elsewhere = { command: "npm run build", workdir: "/srv" };
    expect((await readCall("exec", elsewhere, { config }))?.targets[0]?.at).toMatchObject({ folder: "/srv" });
  });

  it("changes nothing where the outputs are an empty list", async () => {
    expect(await readExec({ command: "git status --short" })).toEqual(nothing);
    expect(await readExec({ command: "git status 2>&1 > /dev/null" })).toEqual(nothing);
  });

  it("is the first entry that fits", async () => {
    expect(await readExec({ command: "make a > b" })).toEqual({ ...nothing, targets: [["out.txt", true]] });
    expect(await readExec({ command: "make a" })).toEqual({ ...nothing, targets: [["/out", true]] });
  });

  it.each([
    "make a && rm b",
    "make a; rm b",
    "make $(rm b)",
    "make a >> b",
    "make a\nrm b",
    "make a | tee b",
  ])("may change more than was declared where it is more than that: %s", async (command) => {
    const targets = [["/out", true]];
    expect(await readExec({ command })).toEqual({
      ...nothing,
      targets,
      undetermined: { because: "undeclared" },
    });
  });

  it.each(["npm run builds", "npm  run build", "ls", "git", "sh -c 'git status'", "", "x".repeat(100_000)])(
    "is undeclared without an entry: %.20s",
    async (command) => {
      expect(await readExec({ command })).toEqual({ targets: [], reads: [], ...UNDECLARED });
    },
  );

  it("is none where it is a program that can only call tools, which are read by themselves", async () => {
    const params = { code: "await write({})", command: "await write({})" };
    expect(await readCall("exec", params, { config, toolKind: "code_mode_exec" })).toBeUndefined();
  });

  it("is unreadable without a text", async () => {
    const unreadable = { targets: [], reads: [], ...UNREADABLE, mayTouchAnything: true, folder: FOLDER };
    expect(await readExec({ command: ["rm", "a"] })).toEqual(unreadable);
    expect(await readExec({})).toEqual(unreadable);
  });

  it("is fitted in linear time", async () => {
    const hostile = parseConflicts({ commands: [{ command: `${"a*".repeat(500)}b`, outputs: [] }] });
    const startedMs = performance.now();
    for (let count = 0; count < 100; count += 1)
      await readCall("exec", { command: "a".repeat(60_000) }, { config: hostile });
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });

  it("fits a pattern whose stars are filled with anything", async () => {
    const word = fc.stringMatching(/^[a-z ./]{0,8}$/u);
    await fc.assert(
      fc.asyncProperty(
        fc.array(word, { minLength: 1, maxLength: 6 }),
        fc.infiniteStream(word),
        async (pieces, fills) => {
          const pattern = `:${pieces.join("*")}:`;
          const command = `:${pieces.reduce((prefix, piece) => `${prefix}${fills.next().value}${piece}`)}:`;
          const declared = parseConflicts({ commands: [{ command: pattern, outputs: ["x"] }] });
          expect(showReading(await readCall("exec", { command }, { config: declared }))).toEqual({
            ...nothing,
            targets: [["x", true]],
          });
        },
      ),
    );
  });
});

describe("a command under way", () => {
  it.each(["write", "send-keys", "submit", "paste", undefined, 5])(
    "may change anything when it is told something: %s",
    async (action) => {
      expect(await readCall("process", { action })).toEqual({ targets: [], reads: [], ...UNDECLARED });
    },
  );

  it("may have changed anything when it is looked at, and not when commands are listed", async () => {
    for (const action of ["poll", "log", "kill", "clear", "remove"])
      expect(await readCall("process", { action })).toEqual({
        targets: [],
        reads: [],
        mayTouchAnything: true,
        folder: FOLDER,
      });
    expect(await readCall("process", { action: "list" })).toBeUndefined();
  });

  it("is an operator's terminal, too, when it is typed into", async () => {
    expect(await readCall("terminal", { action: "input" })).toMatchObject(UNDECLARED);
    expect(await readCall("terminal", { action: "read" })).toBeUndefined();
  });
});

describe("a message to a session", () => {
  const send = async (params: object) =>
    showReading(await readCall("sessions_send", params, { session: "agent:a:x" }));

  it.each([
    [{ sessionKey: " agent:b:main " }, "session:agent:b:main"],
    [{ session_key: "agent:b:main" }, "session:agent:b:main"],
    [{ sessionKey: "agent:b:main", label: "other" }, "session:agent:b:main"],
    [{ sessionKey: "current" }, "session:agent:a:x"],
    [{ sessionKey: "main" }, "session:agent:a:main"],
    [{ agentId: "B" }, "session:agent:b:main"],
    [{ sessionKey: "  ", agentId: "b" }, "session:agent:b:main"],
  ])("changes that session: %j", async (params, resource) => {
    expect(await send({ ...params, message: "hi" })).toEqual({ targets: [[resource]], reads: [] });
  });

  it("changes an agent's main session under the name that the host has for it", async () => {
    const read = await readCall("sessions_send", { agentId: "b" }, { mainKey: "Home" });
    expect(showReading(read)).toMatchObject({ targets: [["session:agent:b:home"]] });
  });

  it("is unreadable where it goes to the caller's own sessions and the caller is not known", async () => {
    for (const sessionKey of ["current", "main"])
      expect(await readCall("sessions_send", { sessionKey })).toMatchObject(UNREADABLE);
  });

  it.each([
    [{ label: "worker" }],
    [{ label: "worker", agentId: "b" }],
    [{ sessionKey: "0b51ae4c-3bbd-4a5f-8e2d-3f4f5d1b2a11" }],
    [{ sessionKey: "openclaw-tui" }],
    [{ sessionKey: `agent:b:${"x".repeat(2_000)}` }],
    [{ agentId: "../b" }],
    [{}],
  ])("is unreadable where only the host knows which it is: %.60j", async (params) => {
    expect(await send(params)).toEqual({ targets: [], reads: [], ...UNREADABLE });
  });
});

describe("a tool that an operator described", () => {
  const config = parseConflicts({
    tools: {
      export: {
        paths: ["output.path", "also", "constructor.name"],
        queues: ["queue"],
        sessions: ["to"],
        cwd: "where",
      },
      write: { paths: ["nothing"] },
    },
  });
  const call = async (params: unknown) => showReading(await readCall("export", params, { config }));

  it("changes what its parameters name, through objects and lists", async () => {
    const params = { output: [{ path: "a" }, { path: ["b", "~/c"] }], queue: "mail", to: "agent:b:main" };
    expect(await call(params)).toEqual({
      targets: [["a", true], ["b", true], [`${homedir()}/c`, true], ["session:agent:b:main"], ["queue:mail"]],
      reads: [],
    });
  });

  it("takes relative paths from the folder that a parameter names", async () => {
    for (const [where, folder] of [
      ["sub", `${FOLDER}/sub`],
      ["/srv", "/srv"],
      [undefined, FOLDER],
    ])
      expect((await readCall("export", { also: "a", where }, { config }))?.targets[0]?.at).toEqual({
        path: "a",
        folder,
      });
  });

  it.each([
    [{}, []],
    [{ also: null }, []],
    [{ also: " " }, []],
    [{ also: "a", where: 5 }, []],
    [{ also: "a", output: "b" }, [["a", true]]],
    [{ also: ["a", 5] }, [["a", true]]],
    [{ also: { path: "a" } }, []],
    [JSON.parse('{"__proto__": {"also": "a"}}'), []],
    [[], []],
    ["a", []],
    [null, []],
  ])("is unreadable where a parameter is something else, or all are missing: %j", async (params, targets) => {
    expect(await call(params)).toEqual({ targets, reads: [], ...UNREADABLE });
  });

  it("does not change what is known of the host's own tools", async () => {
    const read = await readCall("write", { path: "a", content: "", nothing: "b" }, { config });
    expect(showReading(read)).toEqual({ targets: [[`${FOLDER}/a`, true]], reads: [] });
  });
});

describe("any call", () => {
  it("names no more targets than are looked at, and says so", async () => {
    const lines = Array.from(
      { length: BOUNDS.resourcesPerCallMax + 1 },
      (_, index) => `*** Delete File: ${index}`,
    );
    const read = await readCall("apply_patch", createPatch(...lines));
    expect(read?.targets).toHaveLength(BOUNDS.resourcesPerCallMax);
    expect(read).toMatchObject({ undetermined: { because: "too_many" } });
    const exact = await readCall("apply_patch", createPatch(...lines.slice(1)));
    expect(exact?.undetermined).toBeUndefined();
  });

  const config = parseConflicts({
    commands: [{ command: "*", outputs: ["x"] }],
    tools: { mine: { paths: ["a.b", "path"], sessions: ["c"], queues: ["d"], cwd: "e" } },
  });
  const tools = [
    "write",
    "edit",
    "apply_patch",
    "read",
    "exec",
    "process",
    "terminal",
    "sessions_send",
    "mine",
  ];
  const names = [
    "path",
    "content",
    "edits",
    "input",
    "command",
    "workdir",
    "a",
    "b",
    "sessionKey",
    "agentId",
  ];
  const key = fc.oneof(fc.constantFrom(...names, "__proto__", "length"), fc.string());
  const value = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: "small" },
      fc.jsonValue(),
      fc.dictionary(key, tie("json")),
      fc.array(tie("json")),
    ),
  })).json;

  it("is read whatever its parameters are, and what it proposes is told for any text", async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...tools), value, fc.string(), async (tool, params, before) => {
        const read = await readToolCall(createToolCall(tool, params, { config }));
        for (const target of read?.targets ?? []) {
          expect(["text", "deleted", "fails", undefined]).toContain(target.propose?.(before).kind);
          expect(["text", "deleted", "fails", undefined]).toContain(target.propose?.(undefined).kind);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("is read even where a look at its parameters throws", async () => {
    const hostile = new Proxy({}, { getOwnPropertyDescriptor: () => expect.unreachable() });
    for (const tool of ["write", "edit", "apply_patch", "sessions_send", "mine"])
      expect(await readCall(tool, hostile, { config })).toMatchObject(UNREADABLE);
    expect(await readCall("exec", hostile)).toMatchObject({ ...UNREADABLE, mayTouchAnything: true });
  });
});
