/** Owns: the operator's page of a gateway over a ledger, with nothing that a test does not ask for. */
import { statsSchema } from "../../src/agents/coordination/contracts/config/stats-config.ts";
import {
  createPageApp,
  type PageApp,
  type PageAppDependencies,
} from "../../src/plugins/page/server/page-app.ts";
import type { ReportedLedger } from "../../src/plugins/reports/reported-ledger.ts";
import { quietLogger } from "../support/ledger-fixtures.ts";

type BarePage = Partial<PageAppDependencies> & Pick<PageAppDependencies, "clock" | "sessions">;

export function createBarePage(ledger: ReportedLedger, options: BarePage): PageApp {
  return createPageApp({
    product: { name: "openclaw-coordination", version: "0.0.0", home: "gateway" },
    logger: quietLogger,
    places: { hosts: [] },
    targets: statsSchema.parse({}),
    reader: () => Promise.resolve(ledger),
    verification: () => undefined,
    health: () => ({ state: "ok", uncoordinatedSpawns: 0 }),
    files: { assets: new Map() },
    allowsOpaque: true,
    ...options,
  });
}
