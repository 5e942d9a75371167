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
});
