/** Owns: one spelling for each resource that a step names. */
import { FILE, isFile } from "../contracts/resource-names.ts";

/** Sorted, each once. What a path really leads to is known only where the file is. */
export function normalizeResources(resources: readonly string[] = []): readonly string[] {
  return [...new Set(resources.map(normalizeResource))].sort();
}

function normalizeResource(resource: string): string {
  const name = resource.normalize("NFC");
  if (!isFile(name)) return name;
  const path = name.slice(FILE.length);
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return `${FILE}${path.startsWith("/") ? "/" : ""}${parts.join("/")}`;
}
