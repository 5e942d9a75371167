/** One thing by several spellings, and one command within another. */
import { describe, expect, it } from "vitest";
import { parseConflicts, readCall, showReading } from "./writes-calls.ts";

const UNREADABLE = { targets: [], undetermined: { because: "unreadable" } };

describe("a session's key", () => {
  it.each(["agent:main:helper", "agent:MAIN:helper", "AGENT:main:Helper", "  Agent:Main:HELPER "])(
    "is one session however it is spelt: %j",
    async (sessionKey) => {
      const read = await readCall("sessions_send", { sessionKey }, { session: "agent:a:x" });
      expect(showReading(read)).toMatchObject({ targets: [["session:agent:main:helper"]] });
    },
  );

  it("is one session however it is spelt where a tool's configuration names its parameter", async () => {
    const config = parseConflicts({ tools: { tell: { sessions: ["to"] } } });
    const read = await readCall("tell", { to: " agent:MAIN:helper" }, { config });
    expect(showReading(read)).toMatchObject({ targets: [["session:agent:main:helper"]] });
  });

  it.each(["agent:main:a\0b", "agent:main:a\nb"])("with what no key has is unreadable: %j", async (key) => {
    expect(await readCall("sessions_send", { sessionKey: key })).toMatchObject(UNREADABLE);
    const config = parseConflicts({ tools: { tell: { sessions: ["to"] } } });
    expect(await readCall("tell", { to: key }, { config })).toMatchObject(UNREADABLE);
  });
});

describe("a declared command", () => {
  const config = parseConflicts({ commands: [{ command: "cat *", outputs: [] }] });
  const readUndetermined = async (command: string): Promise<unknown> =>
    (await readCall("exec", { command }, { config }))?.undetermined;

  it.each(["cat <(sed -i s/a/b/ src/x.ts)", "cat a <(rm b)", "cat $(rm b)"])(
    "does not answer for a command within it: %s",
    async (command) => {
      expect(await readUndetermined(command)).toBeDefined();
    },
  );

  it.each(["cat a.txt", "cat < a.txt", "cat (a)"])("answers for itself: %s", async (command) => {
    expect(await readUndetermined(command)).toBeUndefined();
  });

  it.each([
    ["cd * && pytest *", "cd /elsewhere && pytest --junitxml=x.xml"],
    ["cd>* && pytest *", "cd>/dev/null /elsewhere && pytest --junitxml=x.xml"],
    ["pushd * && pytest *", "pushd /elsewhere && pytest --junitxml=x.xml"],
    ["git -C * log *", "git -C /elsewhere log --output=x.xml"],
    ["git -C sub log *", "git -C sub log --output=x.xml"],
    ["make -Csub && pytest *", "make -Csub && pytest --junitxml=x.xml"],
    ["git --work-tree=sub diff *", "git --work-tree=sub diff --output=x.xml"],
  ])("does not answer for a file in a folder that the line changes to: %s", async (command, line) => {
    const declared = parseConflicts({ commands: [{ command, outputs: [] }] });
    const read = showReading(await readCall("exec", { command: line }, { config: declared }));
    expect(read).toMatchObject({ targets: [], undetermined: { because: "undeclared" } });
    const absolute = line.replace("x.xml", "/srv/x.xml");
    const named = showReading(await readCall("exec", { command: absolute }, { config: declared }));
    expect(named).toMatchObject({ targets: [["/srv/x.xml", true]] });
    expect(named).not.toHaveProperty("undetermined");
  });

  it("writes the very file that a quoted argument names", async () => {
    const declared = parseConflicts({ commands: [{ command: "git log *", outputs: [] }] });
    const params = { command: "git log --output='~/x'" };
    const read = await readCall("exec", params, { config: declared });
    expect(showReading(read)).toMatchObject({ targets: [["./~/x", true]] });
  });
});

describe("the environment that a command is given", () => {
  const config = parseConflicts({
    commands: [
      { command: "git status", outputs: [] },
      { command: "make", outputs: ["out"] },
    ],
  });
  const readWith = async (command: string, env: unknown, tool = "exec"): Promise<unknown> =>
    showReading(await readCall(tool, { command, env }, { config }));
  const UNDECLARED = { undetermined: { because: "undeclared" } };

  it.each([
    { GIT_TRACE: "/repo/secret.md" },
    { PYTEST_ADDOPTS: "--junitxml=x" },
    { TERM: "dumb", PATH: "/tmp" },
    { LANG: 5 },
    { LC_: "C" },
    [["TERM"]],
    "GIT_TRACE=/x",
    5,
  ])("may make it do more than was declared: %j", async (env) => {
    expect(await readWith("git status", env)).toMatchObject({ targets: [], ...UNDECLARED });
    expect(await readWith("git status", env, "bash")).toMatchObject(UNDECLARED);
    expect(await readWith("make", env)).toMatchObject({ targets: [["out", true]], ...UNDECLARED });
  });

  it.each([
    undefined,
    null,
    {},
    { CI: "1", NO_COLOR: "1", FORCE_COLOR: "0", TERM: "dumb" },
    { LANG: "C", LC_ALL: "C", TZ: "UTC" },
  ])("changes nothing where it says how the output looks: %j", async (env) => {
    expect(await readWith("git status", env)).not.toHaveProperty("undetermined");
  });
});

describe("the folder that a command works in", () => {
  it.each([
    ["../other", "/repo/other"],
    ["sub/../../other", "/repo/other"],
    ["../space/sub", "/repo/space"],
    ["sub", "/repo/space"],
    ["/srv/./x", "/srv/x"],
  ])("is where its working directory leads: %s", async (workdir, folder) => {
    expect((await readCall("exec", { command: "make", workdir }))?.folder).toBe(folder);
  });
});
