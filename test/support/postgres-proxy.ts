/**
 * Owns: a proxy before a PostgreSQL server that loses the connection at a chosen place of a commit, tells numbers of processes as
 * poolers do, and counts statements that are prepared under a name.
 */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/**
 * `question`: the commit never reaches the server. `answer`: the server commits, and nobody hears of it. `both`: as `answer`, and no
 * connection is taken any more.
 */
export type Loss = "question" | "answer" | "both";

export interface PostgresProxy extends AsyncDisposable {
  readonly url: string;
  /** Loses the next commit. */
  loseCommit(loss: Loss): void;
  /** Holds back what follows the next lock of the ledger on its connection. Resolves when the server has the question for it. */
  stallNextAppend(): Promise<void>;
  /** Holds back each answer of the server for so many milliseconds. */
  delayAnswers(ms: number): void;
  /** Takes connections again. */
  open(): void;
  /** How many commits were lost. */
  readonly losses: number;
  /** How many statements were prepared to be kept by a session. */
  readonly keptStatements: number;
}

/** `isPooler`: clients are told a process that is not the server's, because sessions are shared. */
export async function startPostgresProxy(
  serverUrl: string,
  { isPooler = false } = {},
): Promise<PostgresProxy> {
  const target = new URL(serverUrl);
  let loss: Loss | undefined;
  let stall: (() => void) | undefined;
  let isOpen = true;
  let delayMs = 0;
  let losses = 0;
  let keptStatements = 0;
  const sockets = new Set<Socket>();
  const answer = (client: Socket, chunk: Buffer): void => {
    if (delayMs === 0) client.write(chunk);
    else setTimeout(() => client.writable && client.write(chunk), delayMs);
  };
  const passThrough = (client: Socket): void => {
    const server = connect(Number(target.port), target.hostname);
    let isAnswerLost = false;
    let isStalled = false;
    const end = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", end);
      socket.on("close", end);
      socket.once("close", () => sockets.delete(socket));
    }
    client.on("data", (chunk: Buffer) => {
      keptStatements += countKept(chunk);
      if (isStalled) return;
      if (stall && chunk.includes("for update\0")) {
        isStalled = true;
        stall();
        stall = undefined;
      }
      if (loss === undefined || !chunk.includes("commit\0")) {
        server.write(chunk);
        return;
      }
      losses += 1;
      if (loss === "both") isOpen = false;
      isAnswerLost = loss !== "question";
      loss = undefined;
      if (isAnswerLost) server.write(chunk);
      else end();
    });
    server.on("data", (chunk: Buffer) => {
      if (!isAnswerLost) answer(client, isPooler ? hideProcess(chunk) : chunk);
      else if (chunk.includes("COMMIT\0")) end();
    });
  };
  const listener = createServer((client) => {
    if (isOpen) passThrough(client);
    else client.destroy();
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const url = new URL(serverUrl);
  url.hostname = "127.0.0.1";
  url.port = String((listener.address() as AddressInfo).port);
  return {
    url: url.href,
    loseCommit: (chosen) => {
      loss = chosen;
    },
    stallNextAppend: () =>
      new Promise<void>((resolve) => {
        stall = resolve;
      }),
    delayAnswers: (ms) => {
      delayMs = ms;
    },
    open: () => {
      isOpen = true;
    },
    get losses() {
      return losses;
    },
    get keptStatements() {
      return keptStatements;
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, "close");
    },
  };
}

/** BackendKeyData: its letter, its length, the number of the process, a secret. */
const KEY_DATA = Buffer.from([0x4b, 0, 0, 0, 12]);

function hideProcess(chunk: Buffer): Buffer {
  const start = chunk.indexOf(KEY_DATA);
  if (start === -1) return chunk;
  const hidden = Buffer.from(chunk);
  hidden.writeInt32BE(hidden.readInt32BE(start + KEY_DATA.length) + 1, start + KEY_DATA.length);
  return hidden;
}

/** Counts messages "Parse" (its letter, its length, a name, a text) that have a name. */
function countKept(chunk: Buffer): number {
  let kept = 0;
  for (let at = 0; at + 5 < chunk.length; at += 1 + chunk.readInt32BE(at + 1)) {
    if (chunk[at] === 0x50 && chunk[at + 5] !== 0) kept += 1;
    // The first message of a connection has no letter.
    if (chunk[at] === 0) break;
  }
  return kept;
}
