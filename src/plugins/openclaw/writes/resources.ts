/**
 * Owns: registering extractors, for authors of plugins whose tools change something that steps of a coordination may contend
 * for: files that the host does not know of, queues, or resources of their own. Register an extractor, and a step that would
 * overwrite a sibling's work is ruled on before your tool runs.
 *
 * ```ts
 * import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";
 * import { registerResourceExtractor, type ResourceExtractor } from "openclaw-coordination/resources";
 *
 * export default definePluginEntry({
 *   id: "crm",
 *   name: "CRM",
 *   description: "Customers, as tools.",
 *   register(api) {
 *     const customers: ResourceExtractor = {
 *       id: "crm.customers",
 *       tools: ["crm_update", "crm_export"],
 *       extract: ({ tool, params }) =>
 *         tool === "crm_export"
 *           ? { paths: [String(params.file)] }
 *           : { resources: [`crm:customer/${String(params.customerId)}`] },
 *     };
 *     registerResourceExtractor(customers, api);
 *   },
 * });
 * ```
 *
 * It may be called before or after the coordination plugin is loaded, as often as your plugin is loaded, and costs nothing
 * while coordination is off. Given `api`, each registration ends with the instance of your plugin that made it. An extractor that
 * throws, answers with anything else or takes longer than a second makes the call be refused, with the extractor's id in the ledger.
 * While your plugin is loaded again, calls of its tools wait up to 3 s for it, and are then refused for up to 5 minutes.
 */
export { registerResourceExtractor } from "./extractor-registry.ts";
export type { HooksLifecycle } from "../../hooks/hook-types.ts";
export type {
  ExtractedResources,
  ExtractorCall,
  ResourceExtractor,
  ResourceExtractorApi,
} from "./extractor-registry.ts";
