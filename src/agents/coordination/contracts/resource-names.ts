/**
 * Owns: the names of resources: of what kind one is, what is below what, and how people read one. A name is `<kind>:<what>`;
 * the one of a file is `file:` and its path, or `file:@<machine>:` and its path where machines have files of their own. All other
 * names mean the same on every machine.
 */
import { BOUNDS } from "./bounds.ts";

const FILE = "file:";
/** No absolute path begins with `@`, and no name of a machine has a `:`. */
const MACHINE = /^@(?<machine>[a-z0-9][a-z0-9._-]*):/u;

/** Returns the resource name of a file by its real path, and by its machine where machines have files of their own. */
export function nameFile(path: string, machine?: string): string {
  return FILE + formatMachinePrefix(machine) + path;
}

/** Returns the resource name of the content that all hard links of a file share, by its device and inode. */
export function nameHardLinks(device: bigint, inode: bigint, machine?: string): string {
  return `hardlink:${formatMachinePrefix(machine)}${device}-${inode}`;
}

function formatMachinePrefix(machine: string | undefined): string {
  return machine === undefined ? "" : `@${machine}:`;
}

/**
 * Returns the name that a machine has in names of files, made from its hostname; `machine` where nothing of that can
 * be used.
 */
export function formatMachineName(hostname: string): string {
  const name = hostname
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]/gu, "-")
    .replace(/^[^a-z0-9]+/u, "")
    .slice(0, BOUNDS.nameCharsMax);
  return name === "" ? "machine" : name;
}

/** A file as its name says where it is. */
export interface NamedFile {
  readonly path: string;
  /** Absent: on every machine. */
  readonly machine?: string;
}

/** Returns the path and machine in the resource name of a file; `undefined` for the name of any other resource. */
export function parseFileResource(resource: string): NamedFile | undefined {
  if (!isFileResource(resource)) return undefined;
  const place = resource.slice(FILE.length);
  const found = MACHINE.exec(place);
  const machine = found?.groups?.["machine"];
  return found && machine !== undefined ? { path: place.slice(found[0].length), machine } : { path: place };
}

/** A `~` that stands for a home folder, behind what says that a pattern is one of files, and on which machine. */
const HOME = /^(?<kind>file:(?:@[^:/]*:)?)?~(?=\/|$)/u;

/** True for a pattern or path that begins with a `~` for a home folder, with or without a `file:` before it. */
export function isBelowHome(pattern: string): boolean {
  return HOME.test(pattern);
}

/** Returns a pattern or path with the home folder in the place of a `~` that it begins with; as it is where no home is known. */
export function expandHome(pattern: string, home: string | undefined): string {
  return home === undefined
    ? pattern
    : pattern.replace(HOME, (_tilde, kind: string | undefined) => (kind ?? "") + home);
}

/** One letter is a drive. */
const KIND = /^([a-z][a-z0-9_-]+):/u;

/**
 * Returns the kind before the colon of a resource's name, such as `queue` of `queue:mail`; `undefined` for a path.
 * Kinds are in lower case.
 */
export function readResourceKind(name: string): string | undefined {
  return KIND.exec(name)?.[1];
}

/** Formats a resource for people: a file by its path, with its machine where that is not the reader's own. */
export function formatResource(resource: string, ownMachine?: string): string {
  const file = parseFileResource(resource);
  if (!file) return resource;
  const { path, machine } = file;
  return machine === undefined || machine === ownMachine ? path : `${path} on ${machine}`;
}

/** Formats a resource for those who work on its machine: a file by its path alone, any other resource by its name. */
export function formatOwnResource(resource: string): string {
  return parseFileResource(resource)?.path ?? resource;
}

/**
 * True when a claim on the resource `holder` also holds `resource`: both are the same, or the claim is on a folder
 * above it.
 */
export function isClaimCovering(holder: string, resource: string): boolean {
  if (holder === resource) return true;
  if (!holder.startsWith(FILE)) return false;
  return resource.startsWith(holder.endsWith("/") ? holder : `${holder}/`);
}

/**
 * Lists the names of a resource and, of a file, all folders above it, the nearest first; each folder without and with
 * a slash at its end.
 */
export function listResourceAndAbove(resource: string): string[] {
  const names = [resource];
  if (!isFileResource(resource)) return names;
  for (let at = resource.lastIndexOf("/"); at > 0; at = resource.lastIndexOf("/", at - 1))
    names.push(resource.slice(0, at), resource.slice(0, at + 1));
  return names;
}

/** True when the resource name is that of a file. */
export function isFileResource(resource: string): boolean {
  return resource.startsWith(FILE);
}
