import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { isPublicAddress } from "../../src/infra/http/public-address.ts";
import { readWebhookTarget } from "../../src/infra/webhook/webhook-target.ts";
import { startReceiver, send, replyStatus } from "./webhook-scene.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 100) * 20;

const formatDotted = (bits: number): string =>
  [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join(".");
const formatGroups = (groups: readonly number[]): string =>
  groups.map((group) => group.toString(16)).join(":");
const group = fc.integer({ min: 0, max: 0xffff });
const createGroups = (count: number): fc.Arbitrary<number[]> =>
  fc.array(group, { minLength: count, maxLength: count });
const any4 = fc.integer({ min: 0, max: 0xffff_ffff });

/** First and last address of what is not of the public internet, written out by hand. */
const NOT_PUBLIC: readonly (readonly [what: string, first: string, last: string])[] = [
  ["unspecified, and this network", "0.0.0.0", "0.255.255.255"],
  ["private", "10.0.0.0", "10.255.255.255"],
  ["carrier-grade NAT, and the metadata of one cloud", "100.64.0.0", "100.127.255.255"],
  ["loopback", "127.0.0.0", "127.255.255.255"],
  ["link-local, and the metadata of most clouds", "169.254.0.0", "169.254.255.255"],
  ["private", "172.16.0.0", "172.31.255.255"],
  ["of protocols", "192.0.0.0", "192.0.0.255"],
  ["for documents", "192.0.2.0", "192.0.2.255"],
  ["6to4 relays", "192.88.99.0", "192.88.99.255"],
  ["private", "192.168.0.0", "192.168.255.255"],
  ["benchmarks", "198.18.0.0", "198.19.255.255"],
  ["for documents", "198.51.100.0", "198.51.100.255"],
  ["for documents", "203.0.113.0", "203.0.113.255"],
  ["the metadata of one cloud", "168.63.129.16", "168.63.129.16"],
  ["multicast, reserved and broadcast", "224.0.0.0", "255.255.255.255"],
];
const numberOf = (address: string): number =>
  address.split(".").reduce((bits, byte) => bits * 256 + Number(byte), 0);

describe("an IPv4 address", () => {
  it.each(NOT_PUBLIC)("is not public from the first to the last that are %s: %s", (_, first, last) => {
    const [from, to] = [numberOf(first), numberOf(last)];
    fc.assert(
      fc.property(fc.integer({ min: from, max: to }), (bits) => !isPublicAddress(formatDotted(bits))),
    );
    expect([isPublicAddress(first), isPublicAddress(last)]).toEqual([false, false]);
    const around = [from - 1, to + 1].filter((bits) => bits > 0 && bits < 0x1_0000_0000);
    expect(around.map((bits) => isPublicAddress(formatDotted(bits)))).toEqual(around.map(() => true));
  });

  it("is public in every other case", () => {
    const isListed = (bits: number): boolean =>
      NOT_PUBLIC.some(([, first, last]) => bits >= numberOf(first) && bits <= numberOf(last));
    fc.assert(
      fc.property(any4, (bits) => isPublicAddress(formatDotted(bits)) !== isListed(bits)),
      { numRuns: RUNS },
    );
  });
});

describe("an IPv6 address", () => {
  it.each([
    "2606:4700::1111",
    "2001:4860:4860::8888",
    "2a00:1450:4001:81b::200e",
    "2001:200::1",
    "3ffe:ffff::1",
    "2003::1",
  ])("is public where it is of global unicast: %s", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  it.each([
    ["unspecified", "::"],
    ["loopback", "::1"],
    ["unique local", "fc00::1"],
    ["unique local, and the metadata of one cloud", "fd00:ec2::254"],
    ["link-local", "fe80::1"],
    ["link-local with a zone", "fe80::1%eth0"],
    ["global with a zone", "2606:4700::1111%eth0"],
    ["site-local", "fec0::1"],
    ["multicast", "ff02::1"],
    ["for documents", "2001:db8::1"],
    ["for documents", "3fff:0fff::1"],
    ["to be discarded", "100::1"],
    ["Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    ["of a protocol", "2001:1ff:ffff::1"],
    ["a segment identifier", "5f00::1"],
    ["mapped loopback", "::ffff:127.0.0.1"],
    ["mapped loopback in hexadecimal", "::ffff:7f00:1"],
    ["no address", "1.2.3"],
    ["a name", "localhost"],
    ["nothing", ""],
  ])("is not public where it is %s: %s", (_, address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  it("is never public outside of global unicast", () => {
    fc.assert(
      fc.property(createGroups(8), (all) => {
        const isGlobal = all[0]! >> 13 === 1;
        return isGlobal || !isPublicAddress(formatGroups(all));
      }),
      { numRuns: RUNS },
    );
  });

  it("is never public where it stands for an IPv4 address, whichever", () => {
    const forms: readonly ((high: number, low: number) => readonly number[])[] = [
      (high, low) => [0, 0, 0, 0, 0, 0xffff, high, low],
      (high, low) => [0, 0, 0, 0, 0, 0, high, low],
      (high, low) => [0, 0, 0, 0, 0xffff, 0, high, low],
      (high, low) => [0x64, 0xff9b, 0, 0, 0, 0, high, low],
      (high, low) => [0x64, 0xff9b, 1, 0, 0, 0, high, low],
      (high, low) => [0x2002, high, low, 0, 0, 0, 0, 1],
      (high, low) => [0x2001, 0, high, low, 0, 0, ~high & 0xffff, ~low & 0xffff],
    ];
    fc.assert(
      fc.property(fc.constantFrom(...forms), group, group, (form, high, low) => {
        expect(isPublicAddress(formatGroups(form(high, low)))).toBe(false);
      }),
      { numRuns: RUNS },
    );
  });
});

const NOT_PUBLIC_MESSAGE =
  "The webhook's URL leads to an address that is not public, and allowPrivate is not set.";

describe("a webhook without allowPrivate", () => {
  it.each([
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://[::1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://[fd00:ec2::254]/",
    "https://[64:ff9b::7f00:1]/",
    "https://0/",
  ])("is refused for what its URL writes out: %s", async (url) => {
    const { outcome } = await send({ webhook: { url, allowPrivate: false } });
    expect(outcome).toEqual({ kind: "failed", tries: 1, message: NOT_PUBLIC_MESSAGE });
  });

  it.each([
    [["127.0.0.1"]],
    [["10.1.2.3"]],
    [["::1"]],
    [["fe80::1%2"]],
    [["not an address"]],
    // One among public ones is enough.
    [["93.184.215.14", "2606:4700::1111", "192.168.0.1"]],
  ])("is refused where its name leads to %j, and nothing is connected to", async (addresses) => {
    const { url, received } = await startReceiver(replyStatus(200));
    const port = new URL(url).port;
    const requests: string[] = [];
    const { outcome } = await send({
      webhook: { url: `https://hooks.example:${port}/`, allowPrivate: false },
      resolve: (name) => {
        requests.push(name);
        return Promise.resolve(addresses);
      },
    });
    expect(outcome).toEqual({ kind: "failed", tries: 1, message: NOT_PUBLIC_MESSAGE });
    expect(requests).toEqual(["hooks.example"]);
    expect(received).toEqual([]);
  });

  it("is resolved and checked anew for every try", async () => {
    const answers = [[], ["127.0.0.1"]];
    const { outcome } = await send({
      webhook: { url: "https://hooks.example/", allowPrivate: false },
      resolve: () => Promise.resolve(answers.shift() ?? []),
    });
    expect(outcome).toEqual({ kind: "failed", tries: 2, message: NOT_PUBLIC_MESSAGE });
  });

  it.each([
    ["http://hooks.example/", "The webhook's URL is not of HTTPS, and allowPrivate is not set."],
    ["ftp://hooks.example/", "The webhook's URL is not of HTTPS."],
    ["file:///etc/passwd", "The webhook's URL is not of HTTPS."],
    [
      "https://user@hooks.example/",
      "The webhook's URL holds a user name or password; the signature takes their place.",
    ],
    [
      "https://:word@hooks.example/",
      "The webhook's URL holds a user name or password; the signature takes their place.",
    ],
    ["no url", "The webhook's URL cannot be read."],
  ])("is refused before anything is resolved: %s", async (url, message) => {
    expect(readWebhookTarget({ url, allowPrivate: false })).toEqual({ kind: "refused", message });
    const { outcome } = await send({
      webhook: { url, allowPrivate: false },
      resolve: () => Promise.reject(new Error("resolved")),
    });
    expect(outcome).toEqual({ kind: "failed", tries: 0, message });
  });
});

describe("a connection", () => {
  it("goes to the address that was checked, under the name of the URL, and is asked for once a try", async () => {
    const { url, received } = await startReceiver(replyStatus(200));
    const port = new URL(url).port;
    let requestCount = 0;
    const { outcome } = await send({
      // No resolver of the machine knows this name.
      webhook: { url: `http://hooks.invalid:${port}/#part` },
      resolve: () => Promise.resolve((requestCount += 1) === 1 ? ["127.0.0.1"] : ["::1"]),
    });
    expect(outcome).toEqual({ kind: "delivered", tries: 1 });
    expect(requestCount).toBe(1);
    expect(received[0]).toMatchObject({ url: "/", headers: { host: `hooks.invalid:${port}` } });
  });

  it("is tried to the next of the addresses where one does not answer", async () => {
    const { url, received } = await startReceiver(replyStatus(200));
    const port = new URL(url).port;
    const { outcome } = await send({
      webhook: { url: `http://hooks.invalid:${port}/` },
      resolve: () => Promise.resolve(["::1", "127.0.0.1"]),
    });
    expect(outcome).toEqual({ kind: "delivered", tries: 1 });
    expect(received).toHaveLength(1);
  });

  it("over HTTPS asks for the certificate of the name, and sends nothing before it has one", async () => {
    const heard: Buffer[] = [];
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", (bytes) => {
        heard.push(bytes);
        socket.end();
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const { outcome } = await send({
      webhook: { url: `https://hooks.invalid:${(server.address() as AddressInfo).port}/`, triesMax: 1 },
      resolve: () => Promise.resolve(["127.0.0.1"]),
    });
    expect(outcome).toMatchObject({ kind: "failed", tries: 1 });
    const hello = Buffer.concat(heard);
    expect(hello[0]).toBe(22); // A handshake of TLS.
    expect(hello.includes("hooks.invalid")).toBe(true);
    expect(hello.includes("POST")).toBe(false);
  });
});
