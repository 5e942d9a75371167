/** Owns: one spelling for each resource that a step names. */
import { nameFile, parseFile } from "../contracts/resource-names.ts";

/** Returns the names sorted, each once. Where a path really leads is known only on the machine of the file. */
export function normalizeResources(resources: readonly string[] = []): readonly string[] {
  return [...new Set(resources.map(normalizeResource))].sort();
}

function normalizeResource(resource: string): string {
  const name = resource.normalize("NFC");
  const file = parseFile(name);
  if (!file) return name;
  const { path, machine } = file;
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return nameFile((path.startsWith("/") ? "/" : "") + parts.join("/"), machine);
}
