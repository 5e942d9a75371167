/** Owns: the port that shows files to arbitration: which resource a path leads to, its version, and what changed. */

/** The file system, as far as arbitration has to know it. */
export interface ResourceFiles {
  /** The machine that is named in its resources; absent where a path means the same file on every machine. */
  readonly machine?: string;
  /** The home folder of the user whom the process runs as, with `/` between names: `~` of a pattern stands for it. */
  readonly home?: string;
  /**
   * The resource that a path leads to, as `nameFile` names its real path, in one spelling however it is reached. `..` in the path is
   * taken as text, as the host's tools do, and links are followed then. A file that does not exist yet is placed in the real folder
   * that it would be in, and where the file system does not tell upper from lower case the name does not either.
   *
   * `undefined` for a path that leads nowhere: a loop of links, a file where a folder would have to be, a path that is
   * not one, or a name longer than `BOUNDS.resourceCharsMax`.
   *
   * `end` says what is meant where the path ends at a link: what that leads to (`target`), which is so where it is absent, or the
   * link itself (`entry`), which is what removing it changes. With `namesBelowRemoved` so many names at the end of the path lie below
   * something that is removed before: no link, and no file, that is there now leads on to them or stands in their way.
   */
  locate(path: string, folder: string, end?: PathEnd): Promise<string | undefined>;
  /**
   * Returns the name of a path as it is written, in the form of `locate`, but no link is followed. `undefined` for what is no path, and
   * for a longer name.
   */
  spelledName(path: string, folder: string): Promise<string | undefined>;
  /** Returns the present version of a resource of `locate`. A file that cannot be read, or is on another machine, is `unreadable`. */
  look(resource: string): Promise<FileLook>;
  /**
   * The resource that all hard links of a file share (`nameHardLinks`); `undefined` for a file with one name, and for what is
   * no file.
   */
  sharedName(resource: string): Promise<string | undefined>;
  /** True for a folder, but no link to one, that has more than `count` entries. False where nothing can be seen. */
  hasMoreEntries(resource: string, count: number): Promise<boolean>;
  /**
   * Returns a mark that changes with the file, or the link, without reading it: `absent` where nothing is. `undefined` for a folder,
   * and where nothing can be seen.
   */
  stamp(resource: string): Promise<string | undefined>;
  /** The files below a folder whose content or place changed since a time, as far as the bounds of the search allow. */
  findChanged(folder: string, sinceMs: number): Promise<FoundChanges>;
}

/** The meaning of a path that ends at a link, or below something that is removed before. */
export type PathEnd = "target" | "entry" | { readonly namesBelowRemoved: number };

/** The result of a search for changed files. */
export interface FoundChanges {
  readonly paths: readonly string[];
  /** False where the search was given up: there may be more. */
  readonly isWhole: boolean;
}

/** The thing at a path: nothing, a folder, a text, or something that cannot be read. */
export type FileLook =
  | { readonly kind: "absent"; readonly version: string }
  | { readonly kind: "folder"; readonly version: string }
  /** UTF-8, at most `BOUNDS.mergeBytesMax`. A byte order mark is part of the text. */
  | { readonly kind: "text"; readonly version: string; readonly text: string }
  /** Something else, or larger. */
  | { readonly kind: "other"; readonly version: string; readonly because: "not_text" | "too_large" }
  | { readonly kind: "unreadable" };
