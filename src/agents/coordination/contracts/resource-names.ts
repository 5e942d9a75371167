const FILE = "file:";

/** Whether a claim on one resource holds for another: it is the same, or a file below it. */
export function covers(holder: string, resource: string): boolean {
  if (holder === resource) return true;
  if (!holder.startsWith(FILE)) return false;
  return resource.startsWith(holder.endsWith("/") ? holder : `${holder}/`);
}

export function isFile(resource: string): boolean {
  return resource.startsWith(FILE);
}
