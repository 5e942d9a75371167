/** Owns: asking the server. The token is kept here, in memory, and nowhere else. */
import type { PageError, SignedIn } from "../../contract/session.ts";
import { formatQuery } from "./address.ts";

/** An answer that says no, or no answer at all. */
export class ApiProblem extends Error {
  readonly code: PageError["error"] | "unreachable";

  constructor(code: ApiProblem["code"], message: string) {
    super(message);
    this.name = "ApiProblem";
    this.code = code;
  }
}

export interface PageApi {
  /** @throws ApiProblem */
  get<T>(path: string, query?: Readonly<Record<string, string | undefined>>): Promise<T>;
  /** @throws ApiProblem */
  post<T>(path: string, body: object): Promise<T>;
  /** @throws ApiProblem */
  stream(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Response>;
}

const pageOfTab = document.querySelector('meta[name="coordination-page"]')?.getAttribute("content");
/** True in the Control UI's tab, whose document says where the page is, and whose frame may save no files. */
export const IS_IN_TAB = typeof pageOfTab === "string";
/** Beside the document, wherever the page is mounted. */
const ROOT = `${pageOfTab ?? "./"}api/`;

/**
 * Signs in at the server by a one-time link, and returns the session with access to the API by its token. @throws
 * ApiProblem
 */
export async function signIn(link: string): Promise<{ readonly api: PageApi; readonly session: SignedIn }> {
  const session = await requestJson<SignedIn>("session", {
    method: "POST",
    body: JSON.stringify({ link }),
    headers: JSON_BODY,
  });
  return { api: createPageApi(session.token), session };
}

const JSON_BODY = { "content-type": "application/json" };

function createPageApi(token: string): PageApi {
  const authorization = `Bearer ${token}`;
  return {
    get: (path, query = {}) => requestJson(path + formatQuery(query), { headers: { authorization } }),
    post: (path, body) =>
      requestJson(path, {
        method: "POST",
        body: JSON.stringify(body),
        headers: { ...JSON_BODY, authorization },
      }),
    stream: (path, headers, signal) => sendRequest(path, { headers: { ...headers, authorization }, signal }),
  };
}

async function requestJson<T>(path: string, init: RequestInit): Promise<T> {
  const response = await sendRequest(path, init);
  return (await response.json()) as T;
}

/** Sends a request; throws an `ApiProblem` for a refusal, and where the server does not answer. */
async function sendRequest(path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(ROOT + path, { ...init, credentials: "omit", cache: "no-store" }).catch(
    (error: unknown) => {
      if (init.signal?.aborted) throw error;
      throw new ApiProblem("unreachable", "The server does not answer.");
    },
  );
  if (response.ok) return response;
  const { error = "failed", message } = (await response.json().catch(() => ({}))) as Partial<PageError>;
  throw new ApiProblem(error, message ?? `The server answered ${response.status}. Look into its log.`);
}

/**
 * Returns the sentence for people about an error of the page; one that is no `ApiProblem` is written to the console
 * and told in general words.
 */
export function describeProblem(error: unknown): string {
  if (error instanceof ApiProblem) return error.message;
  console.error(error);
  return "Something went wrong in the page itself. Load it again; the browser's console has the details.";
}
