/** Owns: whether the other side can have got a call that failed: not before a connection stands that is accepted. */
import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { createServer, getCACertificates, setDefaultCACertificates } from "node:tls";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createSelfSignedCertificate } from "../support/self-signed-certificate.ts";
import { createSteppingClock, startRawServer, testFetch, type SteppingClock } from "./outbound-scene.ts";

const failOf = (url: string, clock: SteppingClock = createSteppingClock()): Promise<unknown> =>
  testFetch(clock)(url, { method: "POST", body: "{}" }).catch((error: unknown) => error);

/** A server with TLS, which answers no request; with the certificate that it shows. */
async function startTlsServer(onRequest: (socket: Socket) => void) {
  const secret = createSelfSignedCertificate("127.0.0.1");
  const server = createServer(secret, (socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => onRequest(socket));
  });
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, cert: secret.cert };
}

const trust = (cert: string): void => {
  const before = getCACertificates("default");
  setDefaultCACertificates([...before, cert]);
  onTestFinished(() => setDefaultCACertificates(before));
};

describe("a call that cannot have arrived", () => {
  it.each<[string, (socket: Socket) => void]>([
    ["speaks no TLS", (socket) => void socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")],
    ["ends the connection", (socket) => void socket.destroy()],
  ])("is one to an address that %s when TLS is begun", async (_what, speak) => {
    const url = await startRawServer(speak);
    const error = await failOf(url.replace("http:", "https:"));
    expect(error).toMatchObject({ name: "OutboundError", code: "unreachable", isUndelivered: true });
  });

  it("is one whose time ended while TLS was begun", async () => {
    const clock = createSteppingClock();
    const url = await startRawServer(() => clock.expire());
    const error = await failOf(url.replace("http:", "https:"), clock);
    expect(error).toMatchObject({ code: "timed_out", isUndelivered: true });
  });

  it("is one whose name cannot be resolved", async () => {
    const resolve = () => Promise.reject(Object.assign(new Error("later"), { code: "EAI_AGAIN" }));
    const fetch = testFetch(createSteppingClock(), { resolve });
    await expect(fetch("http://a.example/")).rejects.toMatchObject({
      message: "The other side could not be reached: EAI_AGAIN.",
      isUndelivered: true,
    });
  });

  it("is one to a server whose certificate is refused", async () => {
    const onRequest = vi.fn();
    const { url } = await startTlsServer(onRequest);
    expect(await failOf(url)).toMatchObject({ code: "unreachable", isUndelivered: true });
    expect(onRequest).not.toHaveBeenCalled();
  });
});

describe("a call that may have arrived", () => {
  it("is one whose connection broke off", async () => {
    const url = await startRawServer((socket) => void socket.destroy());
    expect(await failOf(url)).toMatchObject({ code: "unreachable", isUndelivered: false });
  });

  it("is one whose time ended on a connection that stood", async () => {
    const clock = createSteppingClock();
    const url = await startRawServer(() => clock.expire());
    expect(await failOf(url, clock)).toMatchObject({ code: "timed_out", isUndelivered: false });
  });

  it("is one whose connection broke off after its certificate was accepted", async () => {
    const { url, cert } = await startTlsServer((socket) => void socket.destroy());
    trust(cert);
    expect(await failOf(url)).toMatchObject({ code: "unreachable", isUndelivered: false });
  });
});
