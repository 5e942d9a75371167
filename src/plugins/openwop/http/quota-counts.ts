/** Owns: what is counted of tenants and addresses at the HTTP face. */
import { DEFAULT_QUOTAS, type Quotas } from "../../../agents/coordination/contracts/workflows/quotas.ts";
import { createAtOnce, type AtOnce } from "./at-once.ts";

export interface QuotaCounts {
  readonly quotas: Quotas;
  readonly tenantStreams: AtOnce;
  readonly addressStreams: AtOnce;
  /** Counts, by address, requests that are not answered. */
  readonly addressRequests: AtOnce;
}

export function createQuotaCounts(changed: Partial<Quotas> = {}): QuotaCounts {
  const quotas = { ...DEFAULT_QUOTAS, ...changed };
  return {
    quotas,
    tenantStreams: createAtOnce(quotas.streams),
    addressStreams: createAtOnce(quotas.addressStreams),
    addressRequests: createAtOnce(quotas.addressRequests),
  };
}
