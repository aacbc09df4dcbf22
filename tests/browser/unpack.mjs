// Unpack the browser and the libraries that it brings along into TMPDIR; print where it is.

import { createRequire } from "node:module";
import { join } from "node:path";

const { default: chromium } = createRequire(join(process.argv[2], "package.json"))("@sparticuz/chromium");
console.log(await chromium.executablePath());
