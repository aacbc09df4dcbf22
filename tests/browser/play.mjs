// Start the browser, play a film, say what happened as JSON lines: {"opened": …}, then {"done": …} or {"failed": "…"}.

import { createRequire } from "node:module";
import { join } from "node:path";

const { home, chromium: executablePath, url, film, scenario, seconds, rate, screenshot } = JSON.parse(process.argv[2]);
const { chromium } = createRequire(join(home, "package.json"))("playwright-core");

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const browser = await chromium.launch({
  executablePath,
  // Root has no sandbox here, and what is played is our own.
  args: ["--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required"],
});
let failed = false;
try {
  const page = await browser.newPage();
  page.on("pageerror", (error) => say({ page: String(error) }));
  await page.goto(`${url}/rig/page.html`);
  const call = (name, argument) =>
    page.evaluate(([name, argument]) => import("/rig/page.js").then((rig) => rig[name](argument)), [name, argument]);
  say({ opened: await call("open", { film, seconds, rate }) });
  const done = await call(scenario);
  if (screenshot) await page.screenshot({ path: screenshot });
  say({ done });
} catch (error) {
  failed = true;
  say({ failed: String(error) });
} finally {
  await browser.close();
}
process.exitCode = failed ? 1 : 0;
