/** `node test/bench/openwop-echo.ts`: a bare `node:http` server that answers every request with the same short JSON. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const BODY = JSON.stringify({ status: "completed" });
const HEADERS = { "content-type": "application/json", "content-length": BODY.length };

const server = createServer((_request, response) => {
  response.writeHead(200, HEADERS).end(BODY);
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ baseUrl: `http://127.0.0.1:${port}` })}\n`);
});
