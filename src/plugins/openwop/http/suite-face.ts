/** Owns: what the HTTP face of a host shows to the protocol's conformance suite beyond the protocol. */
import type { Route } from "./route.ts";

export interface SuiteFace {
  /** Hidden from whoever has no token. */
  readonly routes: readonly Route[];
  /** True for workflows of the suite, which discovery lists so that it runs them. */
  isFixture(workflowId: string): boolean;
}
