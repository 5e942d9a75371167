/** Owns: holding up an answer to the page until a test lets it through, so that answers arrive in the order of the test. */
import type { Page } from "playwright-core";

export interface HeldRoute {
  /** Once the page has asked. */
  readonly arrived: Promise<unknown>;
  /** Lets the request go on as it would have, or with no answer at all. */
  release(outcome?: "answered" | "unanswered"): void;
}

/** Holds up the next request to an address; those behind it go through. */
export async function holdNext(page: Page, address: RegExp): Promise<HeldRoute> {
  const arrival = Promise.withResolvers<undefined>();
  const leave = Promise.withResolvers<"answered" | "unanswered">();
  await page.route(
    address,
    async (route) => {
      arrival.resolve(undefined);
      if ((await leave.promise) === "answered") await route.continue();
      else await route.abort();
    },
    { times: 1 },
  );
  return { arrived: arrival.promise, release: (outcome = "answered") => leave.resolve(outcome) };
}

/** Lets the server answer the next request to an address, as things are then, and holds up the answer. */
export async function holdAnswer(page: Page, address: RegExp): Promise<HeldRoute> {
  const arrival = Promise.withResolvers<undefined>();
  const leave = Promise.withResolvers<undefined>();
  await page.route(
    address,
    async (route) => {
      const response = await route.fetch();
      arrival.resolve(undefined);
      await leave.promise;
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  return { arrived: arrival.promise, release: () => leave.resolve(undefined) };
}

/** Waits until the page has done what an answer that came before lets it do. */
export async function settle(page: Page): Promise<void> {
  await page.evaluate("fetch('./').then((answer) => answer.text())");
  await page.evaluate(
    "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))",
  );
}
