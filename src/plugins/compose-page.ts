/** Owns: the operator's page over one ledger: its files, who is signed in, and a reader of its own that writes nothing. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { fileURLToPath } from "node:url";
import { statsSchema, type StatsConfig } from "../agents/coordination/contracts/config/stats-config.ts";
import { CoordinationError } from "../agents/coordination/contracts/errors.ts";
import { createOpenOnce } from "./open-once.ts";
import type { Logger } from "../agents/coordination/ports/logger.ts";
import { createOnceLoader } from "../agents/coordination/std/load-once.ts";
import { findPackageFile } from "../platform/package-files.ts";
import { systemClock } from "./compose.ts";
import { openLedgerForReading, readHealthBeside } from "./ledger-reader.ts";
import { readVerificationBeside } from "./verification-record.ts";
import type { PageHome, Rights } from "./page/contract/session.ts";
import { createPageApp, type PageAppDependencies } from "./page/server/page-app.ts";
import { createOpenWopListener } from "./openwop/serve.ts";
import { deriveRights } from "./page/server/rights.ts";
import { createContentSecurityPolicy, isAllowedHost } from "./page/server/security-headers.ts";
import { createPageSessions } from "./page/server/page-sessions.ts";
import { readPageFiles, type PageFiles } from "./page/server/static-files.ts";

export interface PageOptions {
  readonly home: PageHome;
  readonly version: string;
  /** The file or URL of a ledger, or the file of the one that would be in the state folder: what lies beside it is shown. */
  readonly ledgerPath: string;
  /** Absent: `ledgerPath`. */
  readonly place?: string;
  readonly logger: Logger;
  /** Names under which the page may be asked for besides the loopback's. */
  readonly hosts: readonly string[];
  /** The targets of the measures. Absent: the defaults. */
  readonly targets?: StatsConfig;
  readonly lanes?: NonNullable<PageAppDependencies["lanes"]>;
  readonly ask?: NonNullable<PageAppDependencies["ask"]>;
  readonly workflows?: NonNullable<PageAppDependencies["workflows"]>;
}

export interface PageHost {
  readonly fetch: (request: Request) => Promise<Response>;
  /** As `fetch`, on a server of somebody else. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  readonly files: PageFiles;
  readonly createPolicy: typeof createContentSecurityPolicy;
  readonly isAllowedHost: (host: string, hosts: readonly string[]) => boolean;
  readonly readRights: typeof deriveRights;
  /** Returns the text of a link that signs in once. */
  mintLink(rights: Rights): string;
  /** Ends the streams of those who follow. */
  close(): void;
  /** Ends everything, the reader too. */
  end(): Promise<void>;
}

/**
 * Creates the operator's page of a ledger, which is not opened before somebody has signed in, and which the caller has
 * to close.
 */
export function createPageHost(options: PageOptions): PageHost {
  const { home, version, ledgerPath, place = ledgerPath, logger, hosts, lanes, ask, workflows } = options;
  const { targets = statsSchema.parse({}) } = options;
  const sessions = createPageSessions(systemClock);
  const reader = createOpenOnce(
    () => openLedgerForReading(place),
    () => new CoordinationError("LEDGER_CLOSED", "the page is closed"),
  );
  const files = readBuiltFiles();
  const app = createPageApp({
    product: { name: "openclaw-coordination", version, home },
    clock: systemClock,
    logger,
    sessions,
    places: { hosts },
    targets,
    reader: reader.get,
    health: () => readHealthBeside(ledgerPath) ?? { state: "ok", uncoordinatedSpawns: 0 },
    verification: () => readVerificationBeside(ledgerPath),
    files,
    allowsOpaque: home === "gateway",
    ...(lanes && { lanes }),
    ...(ask && { ask }),
    ...(workflows && { workflows }),
  });
  return {
    fetch: app.fetch,
    handle: createOpenWopListener({ fetch: app.fetch }),
    createPolicy: createContentSecurityPolicy,
    isAllowedHost: (host, hosts) => isAllowedHost(host, { hosts }),
    readRights: deriveRights,
    files,
    mintLink: (rights) => sessions.mintLink(rights),
    close: () => {
      app.close();
    },
    end: async () => {
      app.close();
      await reader.close();
    },
  };
}

/** The page is built apart from the sources: without it the server says so. */
const readBuiltFiles = createOnceLoader((): PageFiles => {
  try {
    return readPageFiles(fileURLToPath(new URL(".", findPackageFile("dist/page/index.html"))));
  } catch {
    return { assets: new Map() };
  }
});
