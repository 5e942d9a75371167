import { afterAll, beforeAll, expect, it } from "vitest";
import { renderScript, startScriptedModel, type ScriptedModel } from "../support/scripted-model.ts";

let first: ScriptedModel;
let second: ScriptedModel;

beforeAll(async () => {
  [first, second] = await Promise.all([startScriptedModel(), startScriptedModel()]);
});

afterAll(() => Promise.all([first.close(), second.close()]));

const order = {
  role: "user",
  content: renderScript(
    { spawn: [{ label: "child", task: "work" }] },
    { say: "what the script goes on with" },
  ),
};
const calls = { role: "assistant", content: null, tool_calls: [{ id: "call-1", type: "function" }] };
const result = { role: "tool", tool_call_id: "call-1", content: "accepted" };
const announced = { role: "user", content: "A background task completed. Its result is here." };

async function ask(model: ScriptedModel, messages: readonly object[]): Promise<string | undefined> {
  await fetch(`${model.baseUrl}/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model: "scripted", messages }),
  });
  return model.requests.at(-1)?.turn.say;
}

it("goes on with a script into which the host steers a result, where it answered the script's first turn", async () => {
  await ask(first, [order]);
  expect(await ask(first, [order, calls, result, announced])).toBe("what the script goes on with");
});

it("says ok where another model did: a gateway goes from one test file to the next", async () => {
  expect(await ask(second, [order, calls, result, announced])).toBe("ok");
  expect(second.requests.at(-1)).toMatchObject({ matched: "announce" });
});
