/**
 * Owns: HTTP/1.1 over one kept-alive connection, one request at a time, for load clients: so little of it that the client
 * does not use up the processor that the server is measured on. Takes only answers that state their length.
 */
import { connect, type Socket } from "node:net";

export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

export interface KeepAliveClient {
  get(path: string): Promise<HttpAnswer>;
  post(path: string, body: string): Promise<HttpAnswer>;
  close(): void;
}

interface PendingRequest {
  readonly resolve: (answer: HttpAnswer) => void;
  readonly reject: (error: Error) => void;
}

const HEAD_END = "\r\n\r\n";

export async function openClient(baseUrl: string, token: string): Promise<KeepAliveClient> {
  const { hostname, port, host } = new URL(baseUrl);
  const socket = await connectSocket(hostname, Number(port));
  const shared = `Host: ${host}\r\nAuthorization: Bearer ${token}\r\n`;
  const ask = createAsk(socket);
  return {
    get: (path) => ask(`GET ${path} HTTP/1.1\r\n${shared}\r\n`),
    post: (path, body) =>
      ask(
        `POST ${path} HTTP/1.1\r\n${shared}Content-Type: application/json\r\n` +
          `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      ),
    close: () => socket.destroy(),
  };
}

function connectSocket(hostname: string, port: number): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ host: hostname, port, noDelay: true }, () => resolve(socket));
  socket.once("error", reject);
  return promise;
}

function createAsk(socket: Socket): (request: string) => Promise<HttpAnswer> {
  let waiting: PendingRequest | undefined;
  let received = "";
  const fail = (error: Error): void => {
    waiting?.reject(error);
    waiting = undefined;
  };
  // One byte a character, so that what is stated in bytes can be counted in characters.
  socket.setEncoding("latin1");
  socket.on("data", (text: string) => {
    received += text;
    const answer = answerIn(received);
    if (!answer) return;
    received = "";
    const { resolve } = waiting ?? {};
    waiting = undefined;
    resolve?.(answer);
  });
  socket.on("error", fail);
  socket.on("close", () => fail(new Error("the server closed the connection")));
  return (request) =>
    new Promise((resolve, reject) => {
      waiting = { resolve, reject };
      socket.write(request);
    });
}

/** `undefined` while it has not all arrived. */
function answerIn(received: string): HttpAnswer | undefined {
  const headEnd = received.indexOf(HEAD_END);
  if (headEnd < 0) return undefined;
  const head = received.slice(0, headEnd);
  const [, length] = /^content-length: *(\d+)/im.exec(head) ?? [];
  if (length === undefined) throw new Error(`an answer without a length: ${head}`);
  const body = received.slice(headEnd + HEAD_END.length);
  if (body.length < Number(length)) return undefined;
  return { status: Number(head.slice(9, 12)), body };
}
