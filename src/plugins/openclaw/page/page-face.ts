/**
 * Owns: the operator's page of this gateway: one for each runtime. H1 nothing of it is loaded before somebody asks for it.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Phase1Config } from "../../../agents/coordination/contracts/config/config.ts";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type { RunningCoordinator } from "../../compose.ts";
import type { PageHost, PageOptions } from "../../compose-page.ts";
import { createOpenOnce } from "../../open-once.ts";
import { formatGatewayOrigin } from "../openwop/gateway-origin.ts";
import { runOutsideCalls } from "../host/outside-calls.ts";
import { createTabDocument } from "./tab-document.ts";

/** The page in a browser of its own. Its tokens are the authority. */
export const PAGE_PATH = "/coordination/page";
/** The document of the Control UI's tab, which the gateway lets nobody read but its operators. */
export const TAB_PATH = "/coordination/page-tab";

export type AskGateway = NonNullable<PageOptions["ask"]>;

export interface PageFace {
  /** `ask` is how what somebody asks for reaches the gateway methods. */
  handle(request: IncomingMessage, response: ServerResponse, ask: AskGateway): Promise<void>;
  handleTab(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Returns the address of the page with a link that signs in once, and what it lets one do. */
  mintAddress(scopes: readonly string[]): Promise<PageAddress>;
  close(): Promise<void>;
}

export interface PageAddress {
  readonly address: string;
  readonly rights: Parameters<PageHost["mintLink"]>[0];
}

export interface PageFaceDependencies {
  readonly config: Phase1Config;
  /** OpenClaw's configuration as it is now. */
  readonly hostConfig: () => unknown;
  readonly logger: Logger;
  /** The ledger in the state folder: what lies beside it is shown. */
  readonly ledgerPath: string;
  /** The path or the URL of the ledger that is used. */
  readonly place: string;
  readonly version: string;
  readonly coordinator: () => Promise<RunningCoordinator>;
  /** Absent where this gateway runs no workflows. */
  readonly workflows?: NonNullable<PageOptions["workflows"]>;
}

/**
 * Creates the gateway's access to the operator's page, which is loaded at its first use, and again after a failure,
 * and which asks the gateway in the name of the newest request.
 */
export function createPageFace(dependencies: PageFaceDependencies): PageFace {
  let askNow: AskGateway | undefined;
  const ask: AskGateway = (method, params) => {
    if (askNow) return askNow(method, params);
    throw new Error("the page was asked before a request came");
  };
  const loaded = createOpenOnce(
    () =>
      runOutsideCalls(async () => {
        const page = await loadPage(dependencies, ask);
        return { page, close: () => page.end() };
      }),
    () => new CoordinationError("LEDGER_CLOSED", "the page is closed"),
  );
  return {
    handle: async (request, response, askForRequest) => {
      askNow = askForRequest;
      const { page } = await loaded.get();
      const url = (request.url ?? "").slice(PAGE_PATH.length);
      if (!url.startsWith("/")) redirectToTrailingSlash(response);
      else runOutsideCalls(() => page.handle(Object.assign(request, { url }), response));
    },
    handleTab: async (request, response) => {
      const { page } = await loaded.get();
      createTabDocument(page, { request, path: `${PAGE_PATH}/`, hosts: dependencies.config.page.hosts }).send(
        response,
      );
    },
    mintAddress: async (scopes) => {
      const { page } = await loaded.get();
      const rights = page.readRights(scopes);
      const origin = formatGatewayOrigin({ config: dependencies.hostConfig(), env: process.env });
      return { address: `${origin}${PAGE_PATH}/#link=${page.mintLink(rights)}`, rights };
    },
    close: loaded.close,
  };
}

async function loadPage(
  { config, logger, ledgerPath, place, version, coordinator, workflows }: PageFaceDependencies,
  ask: AskGateway,
): Promise<PageHost> {
  const { createPageHost } = await import("../../compose-page.ts");
  return createPageHost({
    home: "gateway",
    version,
    ledgerPath,
    place,
    logger,
    hosts: config.page.hosts,
    targets: config.stats,
    ask,
    lanes: async () => (await coordinator()).laneMetrics(),
    ...(workflows && { workflows }),
  });
}

/** Without the slash at its end, the page's relative addresses would lead elsewhere. */
function redirectToTrailingSlash(response: ServerResponse): void {
  response.writeHead(308, { location: `${PAGE_PATH}/`, "cache-control": "no-store" });
  response.end();
}
