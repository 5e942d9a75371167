/**
 * `node test/bench/hono-server.ts ANSWERS.json`: a bare Hono server that answers each path of the file with its bytes and
 * headers, from memory. The file is `[{"path": ..., "body": ..., "headers": {...}}]`.
 */
import { readFileSync } from "node:fs";
import { serve } from "@hono/node-server";
import { Hono } from "hono";

export interface FixedAnswer {
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const answers = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as readonly FixedAnswer[];
const app = new Hono();
for (const { path, body, headers } of answers)
  app.get(path, (context) => context.body(body, 200, { ...headers }));
serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => {
  process.stdout.write(`${JSON.stringify({ baseUrl: `http://127.0.0.1:${port}` })}\n`);
});
