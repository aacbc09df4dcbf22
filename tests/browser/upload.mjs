// Upload a file with tus-js-client; say as JSON lines how far it is: {"sent": …}, then {"done": "url"} or {"failed": "…"}.

import { createReadStream, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { home, endpoint, key, file, memory, chunk, metadata } = JSON.parse(process.argv[2]);
const tus = createRequire(join(home, "package.json"))("tus-js-client");

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const upload = new tus.Upload(createReadStream(file), {
  endpoint,
  uploadSize: statSync(file).size,
  chunkSize: chunk,
  metadata,
  headers: { Authorization: `Bearer ${key}` },
  urlStorage: new tus.FileUrlStorage(memory),
  fingerprint: async () => file,
  retryDelays: Array(200).fill(100),
  onChunkComplete: (size, sent) => say({ sent }),
  onSuccess: () => say({ done: upload.url }),
  onError: (error) => {
    say({ failed: String(error), status: error.originalResponse?.getStatus() ?? null });
    process.exitCode = 1;
  },
});
const [before] = await upload.findPreviousUploads();
if (before) upload.resumeFromPreviousUpload(before);
say({ resumed: Boolean(before) });
upload.start();
