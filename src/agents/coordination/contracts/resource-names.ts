/**
 * Owns: the names of resources: of what kind one is, what is below what, and how people read one. A name is `<kind>:<what>`;
 * the one of a file is `file:` and its path.
 */
export const FILE = "file:";

/** One letter is a drive. */
const KIND = /^([a-z][a-z0-9_-]+):/u;

/** `queue` of `queue:mail`; `undefined` for a path. Kinds are in lower case. */
export function kindOf(name: string): string | undefined {
  return KIND.exec(name)?.[1];
}

/** A resource as people read it: a file by its path alone. */
export function formatResource(resource: string): string {
  return isFile(resource) ? resource.slice(FILE.length) : resource;
}

/** True when a claim on one resource holds for another: the same one, or a file below it. */
export function isCovering(holder: string, resource: string): boolean {
  if (holder === resource) return true;
  if (!holder.startsWith(FILE)) return false;
  return resource.startsWith(holder.endsWith("/") ? holder : `${holder}/`);
}

/** The resource, and what it is below of, the nearest first. */
export function listResourceAndAbove(resource: string): string[] {
  const names = [resource];
  if (!isFile(resource)) return names;
  for (let at = resource.lastIndexOf("/"); at > 0; at = resource.lastIndexOf("/", at - 1))
    names.push(resource.slice(0, at), resource.slice(0, at + 1));
  return names;
}

/** True when the name is that of a file. */
export function isFile(resource: string): boolean {
  return resource.startsWith(FILE);
}
