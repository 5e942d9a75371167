/** Owns: the pages of a gateway without the gateway: a runtime over the fake host, and the frame that the Control UI shows. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, FrameLocator } from "playwright-core";
import { expect } from "vitest";
import { PAGE_PATH, TAB_PATH } from "../../src/plugins/openclaw/page/page-face.ts";
import {
  takeOpenWopRequest,
  takePageRequest,
} from "../../src/plugins/openclaw/runtime-access/http-requests.ts";
import { makeRuntime } from "../../src/plugins/openclaw/runtime-access/make-runtime.ts";
import { replaceRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { createFakeHost } from "../plugin/fake-host.ts";
import { openPage, type WatchedPage } from "./browser.ts";

export interface ServedGateway extends AsyncDisposable {
  readonly origin: string;
  /** Returns the address of the page in a window of its own, for somebody with these scopes. */
  mintAddress(scopes: readonly string[]): Promise<string>;
}

interface GatewayParts {
  readonly stateDir: string;
  readonly phase1?: Record<string, unknown>;
}

export async function serveGateway({ stateDir, phase1 = {} }: GatewayParts): Promise<ServedGateway> {
  const { api } = createFakeHost({ stateDir, phase1 });
  const runtime = makeRuntime(api);
  await replaceRuntime(runtime);
  const refuseMethods = () => Promise.reject(new Error("this gateway has no methods"));
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { url = "" } = request;
    if (url === "/") showFrame(response);
    else if (url === TAB_PATH)
      await takePageRequest(api, response, (page) => page.handleTab(request, response));
    else if (url.startsWith(PAGE_PATH))
      await takePageRequest(api, response, (page) => page.handle(request, response, refuseMethods));
    else await takeOpenWopRequest(api, request, response);
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    mintAddress: async (scopes) => {
      const minted = await runtime.page?.mintAddress(scopes);
      const { pathname, hash } = new URL(minted?.address ?? "");
      return `${origin}${pathname}${hash}`;
    },
    [Symbol.asyncDispose]: async () => {
      await runtime.close();
      await closeServer(server);
    },
  };
}

/** The sandbox is the one of the host's `plugin-page`. */
function showFrame(response: ServerResponse): void {
  response.setHeader("content-type", "text/html");
  response.end(
    `<!doctype html><iframe sandbox="allow-scripts" src="${TAB_PATH}" style="width: 1200px; height: 700px"></iframe>`,
  );
}

function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

/** Plays in the frame of the tab. Fails where a script went wrong or the content security policy stopped something. */
export async function visitTab(
  browser: Browser,
  { origin }: ServedGateway,
  play: (frame: FrameLocator, watched: WatchedPage) => Promise<void>,
): Promise<void> {
  const watched = await openPage(browser, origin);
  try {
    const frame = watched.page.frameLocator("iframe");
    await frame.locator(".feed.live").waitFor();
    await play(frame, watched);
    expect(watched.problems).toEqual([]);
  } finally {
    await watched.context.close();
  }
}
