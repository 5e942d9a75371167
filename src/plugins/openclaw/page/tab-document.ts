/**
 * Owns: the page's document in the frame of the Control UI's tab, whose origin is opaque: where the page is, a link that reads, and a
 * policy that names the origin, which `'self'` does not there. It has no `<base>`, which would take links to a fragment elsewhere.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { PageHost } from "../../compose-page.ts";

interface TabRequest {
  readonly request: IncomingMessage;
  /** Where the page and its API are. */
  readonly path: string;
  readonly hosts: readonly string[];
}

/** The scope that the host lets a tab's frame have, whoever looks at it. */
const TAB_SCOPES = ["operator.read"];

const TEXT = "text/plain; charset=utf-8";

interface TabDocument {
  send(response: ServerResponse): void;
}

/**
 * Returns the document of the page for a tab of the host's dashboard, with a one-time link that signs it in; an answer
 * with status 403 for a host name that is not allowed, and 503 where the page was not built.
 */
export function createTabDocument(page: PageHost, { request, path, hosts }: TabRequest): TabDocument {
  const { host } = request.headers;
  if (host === undefined || !page.isAllowedHost(host, hosts))
    return createDocumentAnswer(403, TEXT, "This address has another name here: add it to `page.hosts`.\n");
  const { document: html } = page.files;
  if (html === undefined)
    return createDocumentAnswer(503, TEXT, "The page was not built: run `npm run build`.\n");
  // The scheme that the browser sees may be another one than ours, as behind a proxy.
  const source = `http://${host} https://${host}`;
  const policy = page.createPolicy(source);
  const link = page.mintLink(page.readRights(TAB_SCOPES));
  const head = `<head><meta name="coordination-page" content="${path}"><meta name="coordination-link" content="${link}">`;
  const body = html.replaceAll('"./assets/', `"${path}assets/`).replace("<head>", head);
  return createDocumentAnswer(200, "text/html; charset=utf-8", body, policy);
}

function createDocumentAnswer(
  status: number,
  type: string,
  body: string,
  policy = "default-src 'none'",
): TabDocument {
  return {
    send: (response) => {
      response.writeHead(status, {
        "content-type": type,
        "cache-control": "no-store",
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
      });
      response.end(body);
    },
  };
}
