/** Owns: a server on a loopback port that records who calls it, for attacks that would make the host call somebody. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

interface TrappedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Trap extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly TrappedRequest[];
  /** How many connections were made, whether or not anything was asked. */
  connections(): number;
}

export async function startTrap({ redirectTo }: { readonly redirectTo?: string } = {}): Promise<Trap> {
  const requests: TrappedRequest[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    const { url = "", headers } = request;
    void text(request).then((body) => {
      requests.push({ path: url, headers, body });
      if (redirectTo === undefined) response.writeHead(200, { "content-type": "application/json" }).end("{}");
      else response.writeHead(307, { location: `${redirectTo}${url}` }).end();
    });
  });
  server.on("connection", () => (connections += 1));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
