/**
 * Owns: registering extractors, for authors of plugins whose tools change something that steps of a coordination may contend
 * for: files that the host does not know of, queues, or resources of their own. Register an extractor, and a step that would
 * overwrite a sibling's work is ruled on before your tool runs.
 *
 * ```ts
 * import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";
 * import { registerResourceExtractor } from "openclaw-coordination/resources";
 *
 * export default definePluginEntry({
 *   id: "crm",
 *   name: "CRM",
 *   description: "Customers, as tools.",
 *   register(api) {
 *     const unregister = registerResourceExtractor({
 *       id: "crm.customers",
 *       tools: ["crm_update", "crm_export"],
 *       extract: ({ tool, params }) =>
 *         tool === "crm_export"
 *           ? { paths: [String(params.file)] }
 *           : { resources: [`crm:customer/${String(params.customerId)}`] },
 *     });
 *     api.lifecycle.registerRuntimeLifecycle({
 *       id: "crm.customers",
 *       // It is also told of sessions that are reset or deleted.
 *       cleanup: ({ reason }) => {
 *         if (reason === "disable" || reason === "restart") unregister();
 *       },
 *     });
 *   },
 * });
 * ```
 *
 * It may be called before or after the coordination plugin is loaded, as often as your plugin is loaded, and costs nothing
 * while coordination is off. An extractor that throws, answers with anything else or takes longer than a second makes the
 * call be refused, with the extractor's id in the ledger.
 */
export { registerResourceExtractor } from "./extractor-registry.ts";
export type { ExtractedResources, ExtractorCall, ResourceExtractor } from "./extractor-registry.ts";
