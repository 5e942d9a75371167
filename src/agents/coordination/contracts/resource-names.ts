const FILE = "file:";

/** Whether a claim on one resource holds for another: it is the same, or a file below it. */
export function covers(holder: string, resource: string): boolean {
  if (holder === resource) return true;
  if (!holder.startsWith(FILE)) return false;
  return resource.startsWith(holder.endsWith("/") ? holder : `${holder}/`);
}

/** The resource, and what it is below of, the nearest first. */
export function resourceAndAbove(resource: string): string[] {
  const names = [resource];
  if (!isFile(resource)) return names;
  for (let at = resource.lastIndexOf("/"); at > 0; at = resource.lastIndexOf("/", at - 1))
    names.push(resource.slice(0, at), resource.slice(0, at + 1));
  return names;
}

export function isFile(resource: string): boolean {
  return resource.startsWith(FILE);
}
