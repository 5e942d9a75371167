/** One thing by several spellings, and one command within another. */
import { describe, expect, it } from "vitest";
import { conflicts, reading, shown } from "./writes-calls.ts";

const UNREADABLE = { targets: [], undetermined: { because: "unreadable" } };

describe("a session's key", () => {
  it.each(["agent:main:helper", "agent:MAIN:helper", "AGENT:main:Helper", "  Agent:Main:HELPER "])(
    "is one session however it is spelt: %j",
    async (sessionKey) => {
      const read = await reading("sessions_send", { sessionKey }, { session: "agent:a:x" });
      expect(shown(read)).toMatchObject({ targets: [["session:agent:main:helper"]] });
    },
  );

  it("is one session however it is spelt where a tool's configuration names its parameter", async () => {
    const config = conflicts({ tools: { tell: { sessions: ["to"] } } });
    const read = await reading("tell", { to: " agent:MAIN:helper" }, { config });
    expect(shown(read)).toMatchObject({ targets: [["session:agent:main:helper"]] });
  });

  it.each(["agent:main:a\0b", "agent:main:a\nb"])("with what no key has is unreadable: %j", async (key) => {
    expect(await reading("sessions_send", { sessionKey: key })).toMatchObject(UNREADABLE);
    const config = conflicts({ tools: { tell: { sessions: ["to"] } } });
    expect(await reading("tell", { to: key }, { config })).toMatchObject(UNREADABLE);
  });
});

describe("a declared command", () => {
  const config = conflicts({ commands: [{ command: "cat *", outputs: [] }] });
  const undetermined = async (command: string): Promise<unknown> =>
    (await reading("exec", { command }, { config }))?.undetermined;

  it.each(["cat <(sed -i s/a/b/ src/x.ts)", "cat a <(rm b)", "cat $(rm b)"])(
    "does not answer for a command within it: %s",
    async (command) => {
      expect(await undetermined(command)).toBeDefined();
    },
  );

  it.each(["cat a.txt", "cat < a.txt", "cat (a)"])("answers for itself: %s", async (command) => {
    expect(await undetermined(command)).toBeUndefined();
  });
});
