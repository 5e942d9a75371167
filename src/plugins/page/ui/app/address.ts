/** Owns: what the address says: which view, of what, with which filters. It is in the fragment, which no server is sent. */

export const PLACES = ["runs", "questions", "conflicts", "health", "plan"] as const;
/** The name of a part of the page. */
export type PagePlace = (typeof PLACES)[number];

export const TABS = ["timeline", "graph", "log", "what-if"] as const;
export type Tab = (typeof TABS)[number];

export interface Address {
  readonly place: PagePlace;
  /** The id of a coordination or workflow run. */
  readonly id?: string;
  readonly tab: Tab;
  readonly query: Readonly<Record<string, string>>;
}

/**
 * Returns the view, run, tab and query that the fragment of the page's address names; defaults replace what is
 * unknown.
 */
export function parseAddress(fragment: string): Address {
  const [path = "", search = ""] = fragment.replace(/^#\/?/u, "").split("?");
  const [first = "", id, third = ""] = path.split("/").map(decodeSegment);
  const place = PLACES.find((each) => each === first) ?? "runs";
  const tab = TABS.find((each) => each === third) ?? "timeline";
  return { place, ...(id && { id }), tab, query: Object.fromEntries(new URLSearchParams(search)) };
}

/** Returns a segment decoded, or as it is where it cannot be decoded. */
function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export interface AddressParts {
  readonly place: PagePlace;
  readonly id?: string | undefined;
  readonly tab?: Tab | undefined;
  readonly query?: Readonly<Record<string, string | undefined>> | undefined;
}

/** Returns the fragment of the page's address for a view, which `parseAddress` reads. */
export function formatAddress({ place, id, tab, query = {} }: AddressParts): string {
  const path = [place, ...(id === undefined ? [] : [id, tab ?? "timeline"])]
    .map(encodeURIComponent)
    .join("/");
  return `#/${path}${formatQuery(query)}`;
}

/** Formats the query of an address, with its `?`; an entry without a value is left out. */
export function formatQuery(query: Readonly<Record<string, string | undefined>>): string {
  const entries = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : []));
  return entries.length === 0 ? "" : `?${new URLSearchParams(entries).toString()}`;
}

const LINK = /^#link=(.+)$/u;

/** True where the fragment of an address is a one-time link by which to sign in, and no place of the page. */
export function isOneTimeLink(fragment: string): boolean {
  return LINK.test(fragment);
}

/**
 * Returns the one-time link in the address or the document, and removes it from both, so that nobody copies it;
 * `undefined` where there is none.
 */
export function takeOneTimeLink(): string | undefined {
  const link = LINK.exec(location.hash)?.[1];
  if (link !== undefined) history.replaceState(null, "", "#/runs");
  const meta = document.querySelector('meta[name="coordination-link"]');
  const linkOfDocument = meta?.getAttribute("content") ?? undefined;
  meta?.remove();
  return link ?? linkOfDocument;
}
