/**
 * Owns: the names of resources: of what kind one is, what is below what, and how people read one. A name is `<kind>:<what>`;
 * the one of a file is `file:` and its path, or `file:@<machine>:` and its path where machines have files of their own. All other
 * names mean the same on every machine.
 */
import { BOUNDS } from "./bounds.ts";

const FILE = "file:";
/** No absolute path begins with `@`, and no name of a machine has a `:`. */
const MACHINE = /^@(?<machine>[a-z0-9][a-z0-9._-]*):/u;

/** Names a file by its real path, and by its machine where machines have files of their own. */
export function nameFile(path: string, machine?: string): string {
  return FILE + nameMachine(machine) + path;
}

/** Names what all hard links of a file share. */
export function nameHardLinks(device: bigint, inode: bigint, machine?: string): string {
  return `hardlink:${nameMachine(machine)}${device}-${inode}`;
}

function nameMachine(machine: string | undefined): string {
  return machine === undefined ? "" : `@${machine}:`;
}

/** Returns the name of a machine as names of files have it, from what the machine calls itself. */
export function formatMachine(hostname: string): string {
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

/** Parses the name of a file; `undefined` for any other name. */
export function parseFile(resource: string): NamedFile | undefined {
  if (!isFile(resource)) return undefined;
  const place = resource.slice(FILE.length);
  const found = MACHINE.exec(place);
  const machine = found?.groups?.["machine"];
  return found && machine !== undefined ? { path: place.slice(found[0].length), machine } : { path: place };
}

/** A `~` that stands for a home folder, behind what says that a pattern is one of files, and on which machine. */
const HOME = /^(?<kind>file:(?:@[^:/]*:)?)?~(?=\/|$)/u;

/** True for a pattern or path that begins with a `~` for a home folder. */
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

/** `queue` of `queue:mail`; `undefined` for a path. Kinds are in lower case. */
export function kindOf(name: string): string | undefined {
  return KIND.exec(name)?.[1];
}

/** A resource as people read it: a file by its path, with its machine where that is not the reader's own. */
export function formatResource(resource: string, ownMachine?: string): string {
  const file = parseFile(resource);
  if (!file) return resource;
  const { path, machine } = file;
  return machine === undefined || machine === ownMachine ? path : `${path} on ${machine}`;
}

/** A resource as those read it who work where it is: a file by its path alone. */
export function formatOwnResource(resource: string): string {
  return parseFile(resource)?.path ?? resource;
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
