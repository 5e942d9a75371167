/** Owns: a resource as the page shows it, which is read on any machine. */
import { parseFile } from "../../agents/coordination/contracts/resource-names.ts";

/** Names the machine of a file behind its path; other resources are shown by their names. */
export function describeShownResource(resource: string): string {
  const file = parseFile(resource);
  return file?.machine === undefined ? resource : `file:${file.path} on ${file.machine}`;
}
