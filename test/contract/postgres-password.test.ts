/** Owns: how the password of a ledger's URL is read, and that no spelling of it is shown, also where a server sends it back. */
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { connectToServer } from "../../src/infra/postgres/database/connect.ts";

interface EchoServer extends AsyncDisposable {
  readonly port: number;
  /** The passwords that clients sent. */
  readonly passwords: readonly string[];
}

/** Frames a message of PostgreSQL's protocol. */
function createMessage(type: string, ...fields: readonly Buffer[]): Buffer {
  const body = Buffer.concat(fields);
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

const ASK_FOR_PASSWORD = createMessage("R", Buffer.from([0, 0, 0, 3]));

/** Starts a server that asks for the password in clear, and refuses with an error that has it in its text. */
async function startEchoServer(): Promise<EchoServer> {
  const passwords: string[] = [];
  const server = createServer((socket) => {
    let isAsked = false;
    socket.on("error", () => undefined);
    socket.on("data", (data) => {
      if (!isAsked) {
        isAsked = true;
        socket.write(ASK_FOR_PASSWORD);
        return;
      }
      const password = data.subarray(5, -1).toString();
      passwords.push(password);
      const fields = ["SFATAL", "C28P01", `Mno user has ${password}`, ""].map((field) => `${field}\0`);
      socket.end(createMessage("E", Buffer.from(fields.join(""))));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    passwords,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, "close");
    },
  };
}

afterEach(() => {
  vi.unstubAllEnvs();
});

describe("a password that a server sends back", () => {
  it.each([
    ["p%40ss", "p@ss"],
    ["100%word", "100%word"],
    // One stray sign, and the driver decodes only codes of two digits.
    ["a%zz%41", "a%zzA"],
    ["a%zz%4A%41", "a%zz%4AA"],
  ])("is concealed, spelled %s and sent as %s", async (spelled, sent) => {
    await using server = await startEchoServer();
    const url = `postgres://user:${spelled}@127.0.0.1:${server.port}/ledger`;
    const database = await connectToServer({ url, busyTimeoutMs: 1_000 });
    await expect(database.query("select 1")).rejects.toMatchObject({
      code: "LEDGER_UNAVAILABLE",
      message: expect.stringContaining("no user has ***;") as string,
    });
    await database.close();
    expect(server.passwords).toEqual([sent]);
  });

  it.each(["", "?password=s3%40cret"])(
    "is concealed also where it is in PGPASSWORD or a setting of the URL: '%s'",
    async (settings) => {
      await using server = await startEchoServer();
      if (settings === "") vi.stubEnv("PGPASSWORD", "s3@cret");
      const url = `postgres://user@127.0.0.1:${server.port}/ledger${settings}`;
      const database = await connectToServer({ url, busyTimeoutMs: 1_000 });
      await expect(database.query("select 1")).rejects.toMatchObject({
        message: expect.stringContaining("no user has ***;") as string,
      });
      await database.close();
      expect(server.passwords).toEqual(["s3@cret"]);
    },
  );

  it("is not sent where its codes are of no character", async () => {
    await using server = await startEchoServer();
    const url = `postgres://user:a%ff@127.0.0.1:${server.port}/ledger`;
    const database = await connectToServer({ url, busyTimeoutMs: 1_000 });
    await expect(database.query("select 1")).rejects.toMatchObject({ code: "LEDGER_UNAVAILABLE" });
    await database.close();
    expect(server.passwords).toEqual([]);
  });
});
