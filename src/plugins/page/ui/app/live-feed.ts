/**
 * Owns: the stream of changes. It resumes where it was, waits longer after each failure, and notices a connection that went
 * silent. Its beats tell what the server's clock says, by which all times of the page are told.
 */
import type { LiveBeat, LiveChange, LiveEnd } from "../../contract/live.ts";
import { ApiProblem, type PageApi } from "./page-api.ts";

export type FeedState = "connecting" | "live" | "lost" | "paused" | "ended";

export interface FeedListener {
  /** `undefined`: too much happened, or the page was away; everything may have changed. */
  onChange(change: LiveChange | undefined): void;
  onState(state: FeedState): void;
  /** Time has gone on, whether anything happened or not. */
  onBeat(): void;
}

/** The server beats every ten seconds. */
const SILENCE_MS_MAX = 25_000;
const BACKOFF_MS = { first: 250, max: 15_000 } as const;

interface FeedEvent {
  readonly event: string;
  readonly data: string;
}

export class LiveFeed {
  readonly #api: PageApi;
  readonly #listeners = new Set<FeedListener>();
  /** By how much the server's clock is ahead of the browser's. */
  #aheadMs: number;
  #state: FeedState = "connecting";
  #lastEventId = "";
  #failures = 0;
  /** A page may show something older than the position at which the stream goes on. */
  #isBehind = false;
  #connection: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(api: PageApi, serverNowMs: number) {
    this.#api = api;
    this.#aheadMs = serverNowMs - Date.now();
    window.addEventListener("online", () => this.#retryNow());
  }

  get state(): FeedState {
    return this.#state;
  }

  /** Returns what the server's clock says now. */
  get nowMs(): number {
    return Date.now() + this.#aheadMs;
  }

  /** Tells a listener of changes, states and beats; returns a function that ends it. */
  listen(listener: FeedListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  start(): void {
    void this.#connect();
  }

  pause(): void {
    clearTimeout(this.#timer);
    this.#connection?.abort();
    this.#enter("paused");
  }

  resume(): void {
    this.#failures = 0;
    this.#enter("connecting");
    void this.#connect();
  }

  #retryNow(): void {
    if (this.#state !== "lost") return;
    clearTimeout(this.#timer);
    void this.#connect();
  }

  async #connect(): Promise<void> {
    const connection = new AbortController();
    // One that is still under way would become a second stream.
    this.#connection?.abort();
    this.#connection = connection;
    const isResumed = this.#lastEventId !== "";
    const watchdog = setTimeout(() => connection.abort(), SILENCE_MS_MAX);
    try {
      const headers = isResumed ? { "last-event-id": this.#lastEventId } : {};
      const response = await this.#api.stream("live", headers, connection.signal);
      clearTimeout(watchdog);
      this.#isBehind = this.#failures > 0 || isResumed;
      this.#failures = 0;
      this.#enter("live");
      await this.#read(response, connection);
      this.#wait();
    } catch (error) {
      if (this.#connection !== connection || this.#state === "paused") return;
      if (error instanceof ApiProblem && error.code === "unauthenticated") this.#enter("ended");
      else this.#wait();
    } finally {
      clearTimeout(watchdog);
    }
  }

  async #read(response: Response, connection: AbortController): Promise<void> {
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (!reader) return;
    let text = "";
    let watchdog: ReturnType<typeof setTimeout> | undefined;
    try {
      for (;;) {
        watchdog = setTimeout(() => connection.abort(), SILENCE_MS_MAX);
        const chunk = await reader.read();
        clearTimeout(watchdog);
        if (chunk.done) return;
        text += chunk.value;
        const messages = text.split("\n\n");
        text = messages.pop() ?? "";
        for (const message of messages) this.#take(message);
      }
    } finally {
      clearTimeout(watchdog);
    }
  }

  #take(message: string): void {
    const { event, data } = this.#parse(message);
    if (event === "hello" && this.#isBehind) this.#tell(undefined);
    if (event === "change") this.#tell(JSON.parse(data) as LiveChange);
    if (event === "beat") this.#keepTime(JSON.parse(data) as LiveBeat);
    if (event === "lost") this.#tell(undefined);
    if (event === "end" && (JSON.parse(data) as LiveEnd).because === "session_ended") {
      this.#enter("ended");
      this.#connection?.abort();
    }
  }

  #parse(message: string): FeedEvent {
    const fields = message.split("\n").map((line) => /^(\w+): ?(.*)$/u.exec(line) ?? []);
    let event = "";
    let data = "";
    for (const [, name, value = ""] of fields) {
      if (name === "id") this.#lastEventId = value;
      if (name === "event") event = value;
      if (name === "data") data += value;
    }
    return { event, data };
  }

  #wait(): void {
    if (this.#state === "paused" || this.#state === "ended") return;
    this.#enter("lost");
    const waitMs = Math.min(BACKOFF_MS.max, BACKOFF_MS.first * 2 ** this.#failures);
    this.#failures += 1;
    // Many pages must not come back in step.
    this.#timer = setTimeout(() => void this.#connect(), waitMs * (0.75 + Math.random() / 2));
  }

  #enter(state: FeedState): void {
    if (this.#state === state) return;
    this.#state = state;
    for (const listener of this.#listeners) listener.onState(state);
  }

  #keepTime({ nowMs }: LiveBeat): void {
    this.#aheadMs = nowMs - Date.now();
    for (const listener of this.#listeners) listener.onBeat();
  }

  #tell(change: LiveChange | undefined): void {
    for (const listener of this.#listeners) listener.onChange(change);
  }
}
