/**
 * Owns: the OpenWOP host of this gateway: one for each runtime, hence one for each process and ledger.
 *
 * H1 Nothing of it is loaded before it is started or asked. P1 What keeps it from being served is in the log, and tried again
 * with the next request, so that a mended file needs no restart; coordinations go on meanwhile.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Phase1Config } from "../../../agents/coordination/contracts/config/config.ts";
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { ChatModel } from "../../../agents/coordination/ports/outbound.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type { ChatAgents } from "../../chat-agents.ts";
import type { RunningCoordinator } from "../../compose.ts";
import type { ServedOpenWop } from "../../compose-openwop.ts";
import type { PageOptions } from "../../compose-page.ts";
import { formatOpenWopBaseUrl, readOpenWopPath } from "./openwop-address.ts";
import { createHostChatModel } from "./openwop-model.ts";
import type { HostRuntime } from "../host/host-runs.ts";
import { runOutsideCalls } from "../host/outside-calls.ts";
import { createRequestContexts } from "./request-contexts.ts";

export interface OpenWopFace {
  /** Goes on with the runs that a process left behind. Never rejects. */
  start(): Promise<void>;
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** For a message that is here; nothing while it is not served. */
  chats(): Promise<ChatAgents | undefined>;
  /** For operators; refuses while it is not served. */
  readonly controls: WorkflowControls;
  /** A coordination has new events. */
  readonly appended: (runId: string) => void;
  close(): Promise<void>;
}

type WorkflowControls = NonNullable<PageOptions["workflows"]>;

export interface OpenWopFaceDependencies {
  readonly runtime: HostRuntime;
  readonly config: Phase1Config;
  readonly logger: Logger;
  readonly ledgerPath: string;
  readonly version: string;
  readonly coordinator: () => Promise<RunningCoordinator>;
}

/**
 * Creates the gateway's access to OpenWOP, loaded and started at its first use, and again at the next where that
 * failed. Requests wait for it, and are refused where it fails or is closed.
 */
export function createOpenWopFace(dependencies: OpenWopFaceDependencies): OpenWopFace {
  const contexts = createRequestContexts();
  const chat = createHostChatModel(dependencies.runtime, dependencies.logger, contexts.all);
  let opening: Promise<ServedOpenWop> | undefined;
  let openedFace: ServedOpenWop | undefined;
  let closed = false;
  const open = async (): Promise<ServedOpenWop | undefined> => {
    if (closed) return undefined;
    opening ??= runOutsideCalls(() => loadOpenWop(dependencies, chat));
    try {
      openedFace = await opening;
      return openedFace;
    } catch (error) {
      opening = undefined;
      logNotServed(dependencies.logger, error);
      return undefined;
    }
  };
  return {
    start: async () => {
      await open();
    },
    handle: async (request, response) => {
      contexts.came();
      const path = readOpenWopPath(request.url ?? "");
      const served = path === undefined ? undefined : await open();
      if (path === undefined) sendRefusal(response, NOT_FOUND);
      else if (!served || closed) answerUnavailable(response);
      else await runOutsideCalls(() => served.handle(Object.assign(request, { url: path }), response));
    },
    chats: async () => {
      contexts.came();
      const served = await open();
      return closed ? undefined : served?.chats;
    },
    controls: {
      cancel: async (run) => (await open())?.controls.cancel(run) ?? NOT_SERVED,
      fork: async (run) => (await open())?.controls.fork(run) ?? NOT_SERVED,
    },
    appended: (runId) => openedFace?.changed(runId),
    close: async () => {
      closed = true;
      const served = await opening?.catch(() => undefined);
      await served?.close();
    },
  };
}

/** Loads the OpenWOP host and starts it on this gateway's ledger and configuration. */
async function loadOpenWop(
  { runtime, config, logger, ledgerPath, version, coordinator }: OpenWopFaceDependencies,
  chat: ChatModel,
): Promise<ServedOpenWop> {
  const [{ serveOpenWop }, running] = await Promise.all([import("../../compose-openwop.ts"), coordinator()]);
  const { reads, workflows: store } = running;
  const hostConfig = runtime.config.current();
  return serveOpenWop({
    config,
    hostConfig,
    environment: process.env,
    logger,
    ledgerPath,
    version,
    store,
    chat,
    stateDir: runtime.state.resolveStateDir(),
    coordinations: { coordinator: running, store: reads },
    baseUrl: formatOpenWopBaseUrl(config.openwop.baseUrl, { config: hostConfig, env: process.env }),
    readVariable: (name) => process.env[name],
  });
}

/** Logs why OpenWOP is not served, unless the gateway stops or reloads. */
function logNotServed(logger: Logger, error: unknown): void {
  if (!isCoordinationError(error)) {
    logger.error({ error: error instanceof Error ? error.name : typeof error }, "OpenWOP is not served");
    return;
  }
  const { code, message } = error;
  // The gateway stops or reloads.
  if (code !== "LEDGER_CLOSED") logger.error({ code }, `OpenWOP is not served: ${message}`);
}

const NOT_SERVED = { refusal: "OpenWOP is not served by this gateway now: look into its log." };

/** The status and body of an answer to a request that is not served. */
interface FaceRefusal {
  readonly status: 404 | 503;
  readonly body: { readonly error: string; readonly message: string };
}

const NOT_FOUND: FaceRefusal = {
  status: 404,
  body: { error: "not_found", message: "There is nothing here." },
};
const UNAVAILABLE: FaceRefusal = {
  status: 503,
  body: {
    error: "unavailable",
    message: "This host is starting, stopping, or not set up right. Try again later.",
  },
};

/** Answers an OpenWOP request with the refusal that there is no OpenWOP host now. */
export function answerUnavailable(response: ServerResponse): void {
  sendRefusal(response, UNAVAILABLE);
}

function sendRefusal(response: ServerResponse, { status, body }: FaceRefusal): void {
  const wait = status === 503 ? { "retry-after": "5" } : {};
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store", ...wait });
  response.end(JSON.stringify(body));
}
