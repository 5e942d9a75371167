/** Owns: calls of the A2A server of a test as plain JSON-RPC, as a client without a library makes them. */
import { forge } from "../support/ledger-fixtures-damage.ts";
import { TOKEN, type McpWorld } from "./mcp-world.ts";

export interface ShownTask {
  readonly id: string;
  readonly status: {
    readonly state: string;
    readonly timestamp?: string;
    readonly message?: {
      readonly messageId: string;
      readonly parts: readonly {
        readonly text?: string;
        readonly data?: Readonly<Record<string, unknown>>;
      }[];
    };
  };
}

export interface A2aReply<Result> {
  readonly result?: Result;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface A2aCall {
  readonly method: string;
  readonly params: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls a method, and returns its result or its error. */
export async function callA2a<Result>(
  { baseUrl }: Pick<McpWorld, "baseUrl">,
  { method, params, headers }: A2aCall,
): Promise<A2aReply<Result>> {
  const response = await fetch(`${baseUrl}/v1/a2a`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${TOKEN}`,
      "content-type": "application/json",
      "a2a-version": "1.0",
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  return (await response.json()) as A2aReply<Result>;
}

/** Sends a message; `fields` are those of the message, without its role. */
export async function sendMessage(
  world: Pick<McpWorld, "baseUrl">,
  fields: object,
  { headers, configuration }: Pick<A2aCall, "headers"> & { readonly configuration?: object } = {},
): Promise<A2aReply<{ readonly task: ShownTask }>> {
  return await callA2a(world, {
    method: "SendMessage",
    params: { message: { role: "ROLE_USER", ...fields }, ...(configuration && { configuration }) },
    ...(headers && { headers }),
  });
}

/** Returns the question that a task shows. */
export function readShownQuestion(
  task: ShownTask | undefined,
): Readonly<Record<string, unknown>> | undefined {
  return task?.status.message?.parts.find(({ data }) => data)?.data;
}

/** Leaves the ledger as a process leaves it that dies after it did what was asked, and before it kept its answer. */
export function forgetKeptAnswers(ledger: string): void {
  forge(ledger, "update keyed_request set status = null, body = null, lease_until_ms = 0");
}

/** Leaves the ledger so, as a version leaves it that kept the id of a run and not the question. */
export function forgetQuestions(ledger: string): void {
  forgetKeptAnswers(ledger);
  forge(ledger, "update keyed_request set run_id = 'run-a2a-0123456789abcdef'");
}
