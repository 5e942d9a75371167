/** Owns: what the sender of spans says of a collector that does not answer. */
import dns from "node:dns";
import { describe, expect, it, vi } from "vitest";
import { createOtlpSender } from "../../src/infra/otlp/otlp-sender.ts";
import { startOtlpCollector } from "../support/otlp-collector.ts";

const LOOPBACK = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

/** Has every name found at both addresses of this machine, as `localhost` is on most. */
function resolveToBoth(): Disposable {
  const answer = (_name: string, _options: object, tell: (error: null, found: object[]) => void): void =>
    tell(null, LOOPBACK);
  return vi.spyOn(dns, "lookup").mockImplementation(answer as unknown as typeof dns.lookup);
}

describe("a collector that does not answer", () => {
  it("is told of with the code of the connection, where its name has several addresses", async () => {
    using _lookup = resolveToBoth();
    const collector = await startOtlpCollector();
    const { port } = new URL(collector.url);
    await collector[Symbol.asyncDispose]();
    const sender = createOtlpSender({ endpoint: `http://localhost:${port}`, version: "1.2.3" });
    expect(await sender.send([])).toEqual({ kind: "unavailable", why: "ECONNREFUSED" });
  });

  it("is told of with the address, where its name has one", async () => {
    const collector = await startOtlpCollector();
    await collector[Symbol.asyncDispose]();
    const sender = createOtlpSender({ endpoint: collector.url, version: "1.2.3" });
    const why = `connect ECONNREFUSED ${new URL(collector.url).host}`;
    expect(await sender.send([])).toEqual({ kind: "unavailable", why });
  });

  it("is told of with how long it was waited for", async () => {
    await using collector = await startOtlpCollector();
    collector.answer = "hang";
    const sender = createOtlpSender({ endpoint: collector.url, version: "1.2.3", sendMs: 200 });
    expect(await sender.send([])).toEqual({ kind: "unavailable", why: "no answer within 0.2 s" });
  });
});
