/** Owns: what the address says: which view, of what, with which filters. It is in the fragment, which no server is sent. */

export const PLACES = ["runs", "questions", "conflicts", "health", "plan"] as const;
export type Place = (typeof PLACES)[number];

export const TABS = ["timeline", "graph", "log", "what-if"] as const;
export type Tab = (typeof TABS)[number];

export interface Address {
  readonly place: Place;
  /** The id of a coordination or workflow run. */
  readonly id?: string;
  readonly tab: Tab;
  readonly query: Readonly<Record<string, string>>;
}

export function parseAddress(fragment: string): Address {
  const [path = "", search = ""] = fragment.replace(/^#\/?/u, "").split("?");
  const [first = "", id, third = ""] = path.split("/").map(decodeSegment);
  const place = PLACES.find((each) => each === first) ?? "runs";
  const tab = TABS.find((each) => each === third) ?? "timeline";
  return { place, ...(id && { id }), tab, query: Object.fromEntries(new URLSearchParams(search)) };
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export interface AddressParts {
  readonly place: Place;
  readonly id?: string | undefined;
  readonly tab?: Tab | undefined;
  readonly query?: Readonly<Record<string, string | undefined>> | undefined;
}

export function formatAddress({ place, id, tab, query = {} }: AddressParts): string {
  const path = [place, ...(id === undefined ? [] : [id, tab ?? "timeline"])]
    .map(encodeURIComponent)
    .join("/");
  const entries = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : []));
  const search = new URLSearchParams(entries).toString();
  return `#/${path}${search === "" ? "" : `?${search}`}`;
}

const LINK = /^#link=(.+)$/u;

/** Tells whether a fragment is no place of the page but a one-time link. */
export function isLink(fragment: string): boolean {
  return LINK.test(fragment);
}

/** Takes the one-time link out of the address, so that nobody copies it, and out of what the gateway put into the document. */
export function takeLink(): string | undefined {
  const link = LINK.exec(location.hash)?.[1];
  if (link !== undefined) history.replaceState(null, "", "#/runs");
  const meta = document.querySelector('meta[name="coordination-link"]');
  const linkOfDocument = meta?.getAttribute("content") ?? undefined;
  meta?.remove();
  return link ?? linkOfDocument;
}
