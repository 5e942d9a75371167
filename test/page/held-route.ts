/** Owns: holding up an answer to the page until a test lets it through, so that answers arrive in the order of the test. */
import type { Page, Route } from "playwright-core";

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
  await handleNext(page, address, async (route) => {
    arrival.resolve(undefined);
    if ((await leave.promise) === "answered") await route.continue();
    else await route.abort();
  });
  return { arrived: arrival.promise, release: (outcome = "answered") => leave.resolve(outcome) };
}

/** Lets the server answer the next request to an address, as things are then, and holds up the answer. */
export async function holdAnswer(page: Page, address: RegExp): Promise<HeldRoute> {
  const arrival = Promise.withResolvers<undefined>();
  const leave = Promise.withResolvers<undefined>();
  await handleNext(page, address, async (route) => {
    const response = await route.fetch();
    arrival.resolve(undefined);
    await leave.promise;
    await route.fulfill({ response });
  });
  return { arrived: arrival.promise, release: () => leave.resolve(undefined) };
}

/**
 * The route stays where `times: 1` would take it away: Chromium now and then never answers a request that is made while
 * interception ends.
 */
async function handleNext(
  page: Page,
  address: RegExp,
  intercept: (route: Route) => Promise<void>,
): Promise<void> {
  let isNext = true;
  await page.route(address, async (route) => {
    if (!isNext) return route.fallback();
    isNext = false;
    return intercept(route);
  });
}

/** Waits until the page has done what an answer that came before lets it do. */
export async function settle(page: Page): Promise<void> {
  await page.evaluate("fetch('./').then((answer) => answer.text())");
  await page.evaluate(
    "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))",
  );
}
