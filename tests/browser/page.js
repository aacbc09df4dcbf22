// What happens inside the page. Every wait has a limit and says what it waited for.

const video = document.querySelector("video");
const said = { errors: [], switched: [], waiting: 0, frozen: [] };
const buffers = {};
let patience = 20_000;
let hls;

// The element shows only what all tracks have; a hole in one of them is seen better in its own buffer.
const add = MediaSource.prototype.addSourceBuffer;
MediaSource.prototype.addSourceBuffer = function (type) {
  const buffer = add.call(this, type);
  buffers[type.split("/")[0]] = buffer;
  return buffer;
};

const ranges = (buffered) => Array.from({ length: buffered.length }, (_, i) => [buffered.start(i), buffered.end(i)]);

async function until(what, condition) {
  const end = performance.now() + patience;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`waited in vain until ${what}: ${JSON.stringify(state())}`);
    await new Promise((resume) => setTimeout(resume, 10));
  }
}

export function state() {
  const quality = video.getVideoPlaybackQuality();
  const tracks = Object.entries(buffers).map(([kind, buffer]) => [kind, ranges(buffer.buffered)]);
  return {
    time: video.currentTime,
    duration: video.duration,
    ended: video.ended,
    paused: video.paused,
    ready: video.readyState,
    width: video.videoWidth,
    height: video.videoHeight,
    level: hls.currentLevel,
    buffered: ranges(video.buffered),
    tracks: Object.fromEntries(tracks),
    frames: { decoded: quality.totalVideoFrames, dropped: quality.droppedVideoFrames },
    ...structuredClone(said),
  };
}

/** Open the master and play; returns once something moves. */
export async function open({ film, seconds, rate }) {
  patience = 1000 * seconds;
  hls = new Hls({ maxBufferLength: 600, maxMaxBufferLength: 600, backBufferLength: Infinity });
  hls.on(Hls.Events.ERROR, (_, error) => {
    const { type, details, fatal, reason } = error;
    said.errors.push({ type, details, fatal, reason: reason ?? error.error?.message, at: video.currentTime });
  });
  hls.on(Hls.Events.LEVEL_SWITCHED, (_, { level }) => said.switched.push(level));
  video.addEventListener("waiting", () => (said.waiting += 1));
  hls.loadSource(film);
  hls.attachMedia(video);
  await until("the master was read", () => hls.levels.length > 0 || fatal());
  still("when it was opened");
  video.playbackRate = video.defaultPlaybackRate = rate;
  video.play().catch(() => {}); // what went wrong is seen below
  await moves("at the start");
  return { ...state(), levels: hls.levels.map(({ width, height, bitrate }) => ({ width, height, bitrate })) };
}

const fatal = () => said.errors.some((error) => error.fatal);

async function moves(where) {
  const from = video.currentTime;
  await until(`it plays ${where}`, () => fatal() || video.ended || video.currentTime > from + 0.1);
  still(where);
}

/** Is it still alive? */
function still(where) {
  if (fatal()) throw new Error(`a fatal error ${where}: ${JSON.stringify(said.errors)}`);
}

const whole = () => {
  const have = ranges(video.buffered);
  return have.length > 0 && have[have.length - 1][1] > video.duration - 0.1;
};

/** Wait until all is buffered up to the end; pause, or a short film would be over. */
async function filled() {
  video.pause();
  await until("all is buffered", () => fatal() || whole());
  still("while it was buffered");
  return state();
}

/** Go there and play; returns where it is. */
async function seek(to) {
  video.currentTime = to;
  await until(`it has sought ${to}`, () => fatal() || (!video.seeking && video.readyState >= 2));
  const from = video.currentTime;
  video.play().catch(() => {});
  return from;
}

/** Seek to just before and just after each border, and see that it plays on from there. */
async function borders() {
  const list = (hls.levels[hls.currentLevel] ?? hls.levels[0]).details.fragments;
  const seeks = list.flatMap((fragment) => [fragment.start - 0.05, fragment.start + 0.05]);
  for (const to of seeks.filter((at) => at >= 0 && at < video.duration)) {
    const from = await seek(to);
    await moves(`after seeking to ${to}`);
    said.frozen.push(...(video.ended || video.currentTime > from ? [] : [to]));
  }
  return seeks.length;
}

/** Switch to each rung in turn, up and down again, dropping what is buffered, and see which one is shown. */
async function switches() {
  const up = hls.levels.map((_, level) => level);
  const shown = [];
  for (const level of [...up, ...up.slice(0, -1).reverse()]) {
    await seek(0.5); // a switch in the moment of a seek, or at the very end, is another story
    await moves("before the switch");
    const before = said.switched.length;
    const same = hls.currentLevel === level;
    hls.currentLevel = level;
    await until(`rung ${level} plays`, () => fatal() || same || said.switched.slice(before).includes(level));
    await until(`the picture is rung ${level}`, () => fatal() || video.videoHeight === hls.levels[level].height);
    await moves(`on rung ${level}`);
    const { buffered, tracks, width, height } = await filled();
    shown.push({ level, current: hls.currentLevel, width, height, buffered, tracks });
  }
  return shown;
}

/** Play it through quickly while each segment comes from another rung than the one before. */
async function through() {
  const loaded = [];
  hls.on(Hls.Events.FRAG_LOADED, (_, { frag }) => {
    if (frag.type === "main" && frag.sn !== "initSegment") hls.loadLevel = (frag.level + 1) % hls.levels.length;
  });
  hls.on(Hls.Events.FRAG_BUFFERED, (_, { frag }) => {
    if (frag.type === "main" && frag.sn !== "initSegment") loaded.push([frag.sn, frag.level]);
  });
  await seek(0);
  hls.currentLevel = (hls.currentLevel + 1) % hls.levels.length; // drops what is buffered
  video.playbackRate = 3;
  await until("it ends", () => fatal() || video.ended);
  video.playbackRate = 1;
  return { loaded, ...state() };
}

/** Only look what is buffered. */
export async function look() {
  return await filled();
}

export async function vod() {
  const first = await filled();
  const seeks = await borders();
  const shown = await switches();
  const played = await through();
  return { first, seeks, shown, played, ...state() };
}

/** Watch to the end, however long it takes to come. */
export async function watch() {
  const started = state();
  while (!video.ended && !fatal()) {
    const from = video.currentTime;
    await until(`it goes on after ${from}`, () => fatal() || video.ended || video.currentTime > from + 0.1);
  }
  return { started, ...state() };
}
