// Open the description of the API, unfold one operation; say what was asked for, what is shown and what went wrong.

import { createRequire } from "node:module";
import { join } from "node:path";

const { home, chromium: executablePath, url, operation, screenshot } = JSON.parse(process.argv[2]);
const { chromium } = createRequire(join(home, "package.json"))("playwright-core");

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
try {
  const page = await browser.newPage({ viewport: { width: 1100, height: 1400 } });
  const asked = [];
  const wrong = [];
  page.on("request", (request) => asked.push(request.url()));
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (line) => line.type() === "error" && wrong.push(line.text()));
  await page.goto(`${url}/docs#${operation}`);
  await page.waitForSelector(`#${operation}[open] > div`);
  const shown = await page.locator(`#${operation}`).textContent();
  const operations = await page.locator("section > details").count();
  // All of them, one after the other: an odd schema must not break the page.
  await page.evaluate(() => document.querySelectorAll("section > details").forEach((one) => { one.open = true; }));
  await page.waitForFunction(() => [...document.querySelectorAll("section > details")].every((one) => one.children[1]));
  await page.evaluate((keep) => document.querySelectorAll("section > details").forEach((one) => {
    one.open = one.id === keep;
  }), operation);
  if (screenshot) {
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: screenshot });
  }
  await page.fill("#find", "prioritise");
  const found = await page.locator("section > details:visible").count();
  say({ opened: { operations, found }, done: { asked, wrong, shown } });
} catch (error) {
  say({ failed: String(error) });
  process.exitCode = 1;
} finally {
  await browser.close();
}
