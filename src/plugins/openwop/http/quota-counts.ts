/** Owns: what is counted of tenants and addresses at the HTTP face. */
import { DEFAULT_QUOTAS, type Quotas } from "../../../agents/coordination/contracts/workflows/quotas.ts";
import { createConcurrencyCounter, type AtOnce } from "./at-once.ts";

export interface QuotaCounts {
  readonly quotas: Quotas;
  readonly tenantStreams: AtOnce;
  readonly addressStreams: AtOnce;
  /** Counts, by address, requests that are not answered. */
  readonly addressRequests: AtOnce;
}

/**
 * Creates the counters of streams and requests that are open at once, for each tenant and address, under the default
 * quotas with `changed` in place of some.
 */
export function createQuotaCounts(changed: Partial<Quotas> = {}): QuotaCounts {
  const quotas = { ...DEFAULT_QUOTAS, ...changed };
  return {
    quotas,
    tenantStreams: createConcurrencyCounter(quotas.streams),
    addressStreams: createConcurrencyCounter(quotas.addressStreams),
    addressRequests: createConcurrencyCounter(quotas.addressRequests),
  };
}
