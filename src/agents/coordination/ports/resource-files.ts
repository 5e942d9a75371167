/** The file system, as far as arbitration has to know it. */
export interface ResourceFiles {
  /**
   * The resource that a path leads to: `file:` and the real path, in one spelling however it is reached. `..` in the path is
   * taken as text, as the host's tools do, and links are followed then. What does not exist yet is placed in the real folder
   * that it would be in, and where the file system does not tell upper from lower case the name does not either.
   *
   * `undefined` for a path that leads nowhere: a loop of links, a file where a folder would have to be, a path that is
   * not one, or a name longer than `BOUNDS.resourceCharsMax`.
   */
  locate(path: string, folder: string): Promise<string | undefined>;
  /** What a resource of `locate` is now. A file that cannot be read is `unreadable`. */
  look(resource: string): Promise<FileLook>;
}

/** What is at a path: nothing, a folder, a text, or something that cannot be read. */
export type FileLook =
  | { readonly kind: "absent"; readonly version: string }
  | { readonly kind: "folder"; readonly version: string }
  /** UTF-8, at most `BOUNDS.mergeBytesMax`. A byte order mark is part of the text. */
  | { readonly kind: "text"; readonly version: string; readonly text: string }
  /** Something else, or larger. */
  | { readonly kind: "other"; readonly version: string; readonly because: "not_text" | "too_large" }
  | { readonly kind: "unreadable" };
