/** Owns: which token stands for which origin, as operators write both. */
import { describe, expect, it } from "vitest";
import { resolveTokens, withTokens } from "../../src/infra/http/tokens.ts";

const readVariable = (name: string): string | undefined =>
  new Map([
    ["SET", "a-token"],
    ["TWO_WORDS", "two words"],
    ["EMPTY", ""],
  ]).get(name);

describe("the token of an origin", () => {
  it.each([
    ["https://peer.example", "https://peer.example"],
    ["https://Peer.Example", "https://peer.example"],
    ["https://peer.example:443", "https://peer.example"],
    ["http://127.1:4100", "http://127.0.0.1:4100"],
  ])("is found however the origin is written: %s", (written, origin) => {
    expect(resolveTokens({ [written]: "a" }, readVariable)).toEqual({
      tokens: { [origin]: "a" },
      problems: {},
    });
  });

  it("may stand in a variable", () => {
    const { tokens } = resolveTokens({ "https://peer.example": "${SET}" }, readVariable);
    expect(tokens).toEqual({ "https://peer.example": "a-token" });
  });

  const UNUSABLE =
    "names a variable that is not set, or is not a word of visible ASCII characters (openwop.peerTokens, --peer-token).";

  it.each(["${NOT_SET}", "team-${SET}", "team-${NOT_SET}", "${EMPTY}", "${TWO_WORDS}"])(
    "cannot be used where it is %s, and leaves the others",
    (text) => {
      const written = { "https://Peer.Example": text, "https://other.example": "b" };
      expect(resolveTokens(written, readVariable)).toEqual({
        tokens: { "https://other.example": "b" },
        problems: { "https://peer.example": UNUSABLE },
      });
    },
  );

  it("cannot be used where there are two", () => {
    const written = { "https://peer.example": "a", "https://peer.example:443": "b" };
    expect(resolveTokens(written, readVariable)).toEqual({
      tokens: {},
      problems: { "https://peer.example": "is given twice (openwop.peerTokens, --peer-token)." },
    });
  });

  it("that cannot be used keeps its origin, and no other one, from being called", async () => {
    const called: string[] = [];
    const { tokens, problems } = resolveTokens({ "https://peer.example": "${NOT_SET}" }, readVariable);
    const fetch = withTokens(
      (input) => {
        called.push(input instanceof Request ? input.url : String(input));
        return Promise.resolve(new Response());
      },
      tokens,
      problems,
    );
    await expect(fetch("https://peer.example/v1/runs")).rejects.toMatchObject({
      code: "not_configured",
      message: `The token for the other side ${UNUSABLE}`,
      isUndelivered: true,
    });
    await fetch("https://other.example/");
    expect(called).toEqual(["https://other.example/"]);
  });
});
