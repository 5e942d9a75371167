import { describe, expect, it } from "vitest";
import {
  callOf,
  createCallerWith,
  createCard1,
  createPlainReply,
  createRpcReply,
  createWorkingTask,
} from "./a2a-scene.ts";
import {
  createSteppingClock,
  replyInTurn,
  replyJson,
  serve,
  type Reply,
  type Server,
} from "./outbound-scene.ts";

describe("a task that is at work at an A2A agent", () => {
  const BEGUN = createRpcReply({ result: { task: createWorkingTask("WORKING") } });
  const CANCELLED = createRpcReply({ result: createWorkingTask("CANCELED") });
  const methodsOf = ({ received }: Server): string[] =>
    received.flatMap(({ body }) => (body === "" ? [] : [(JSON.parse(body) as { method: string }).method]));

  it("is begun without waiting for its end, which may take longer than an exchange", async () => {
    const replies = {
      SendMessage: BEGUN,
      GetTask: createRpcReply({ result: createWorkingTask("COMPLETED") }),
    };
    const server = await serve(createPlainReply(createCard1, replies));
    expect(await createCallerWith()(callOf(server.url))).toMatchObject({ ok: true, state: "completed" });
    const [, sent] = server.received.map(({ body }) => body);
    expect(JSON.parse(sent!)).toMatchObject({ params: { configuration: { returnImmediately: true } } });
  });

  it("is looked at again where its agent fails for a while", async () => {
    const looks = replyInTurn(
      replyJson(500, {}),
      (response) => void response.destroy(),
      replyJson(429, {}),
      createRpcReply({ result: createWorkingTask("COMPLETED") }),
    );
    const server = await serve(createPlainReply(createCard1, { SendMessage: BEGUN, GetTask: looks }));
    expect(await createCallerWith()(callOf(server.url))).toMatchObject({ ok: true, state: "completed" });
  });

  it.each([-32_603, -32_000])(
    "is looked at again where its agent answers with error %d once",
    async (code) => {
      const looks = replyInTurn(
        createRpcReply({ error: { code, message: "locked" } }),
        createRpcReply({ result: createWorkingTask("COMPLETED") }),
      );
      const replies = { SendMessage: BEGUN, GetTask: looks, CancelTask: CANCELLED };
      const server = await serve(createPlainReply(createCard1, replies));
      expect(await createCallerWith()(callOf(server.url))).toMatchObject({ ok: true, state: "completed" });
      expect(methodsOf(server)).toEqual(["SendMessage", "GetTask", "GetTask"]);
    },
  );

  it.each<[string, Reply, object]>([
    ["fails again and again", replyJson(500, {}), { kind: "unknown", status: 500 }],
    [
      "knows it no more",
      createRpcReply({ error: { code: -32001, message: "none" } }),
      { kind: "refused", code: "rejected" },
    ],
  ])("is given up and cancelled where its agent %s", async (_fault, look, expected) => {
    const replies = { SendMessage: BEGUN, GetTask: look, CancelTask: CANCELLED };
    const server = await serve(createPlainReply(createCard1, replies));
    expect(await createCallerWith()(callOf(server.url))).toMatchObject(expected);
    expect(methodsOf(server).at(-1)).toBe("CancelTask");
  });

  it.each([
    ["is cancelled when the time of the call is over", "timed_out", false, ["CancelTask"]],
    ["is cancelled when the run that called has ended", "aborted", false, ["CancelTask"]],
    ["goes on where another process goes on with the call", "aborted", true, []],
  ])("%s", async (_sentence, code, isLeft, last) => {
    const clock = createSteppingClock();
    const controller = new AbortController();
    const end = (): void => (code === "aborted" ? controller.abort() : clock.expire());
    const replies = { SendMessage: BEGUN, GetTask: () => void setImmediate(end), CancelTask: CANCELLED };
    const server = await serve(createPlainReply(createCard1, replies));
    const call = callOf(server.url, { signal: controller.signal, isLeftToOthers: () => isLeft });
    expect(await createCallerWith(clock)(call)).toMatchObject({ kind: "unknown", code });
    expect(methodsOf(server)).toEqual(["SendMessage", "GetTask", ...last]);
  });

  it("is cancelled as soon as it is known where its run has ended meanwhile", async () => {
    const controller = new AbortController();
    const begin: Reply = (response, request) => {
      controller.abort();
      BEGUN(response, request);
    };
    const server = await serve(createPlainReply(createCard1, { SendMessage: begin, CancelTask: CANCELLED }));
    const outcome = await createCallerWith()(callOf(server.url, { signal: controller.signal }));
    expect(outcome).toMatchObject({ kind: "unknown", code: "aborted" });
    expect(methodsOf(server)).toEqual(["SendMessage", "CancelTask"]);
  });

  it("does not hold up the end of its call where it cannot be cancelled", async () => {
    const replies = { SendMessage: BEGUN, GetTask: replyJson(404, {}), CancelTask: replyJson(500, {}) };
    const server = await serve(createPlainReply(createCard1, replies));
    expect(await createCallerWith()(callOf(server.url))).toMatchObject({ kind: "refused", status: 404 });
  });
});
