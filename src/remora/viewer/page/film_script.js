// Playback of a stand-alone file: viser's bar stays, unseen, and is worked by our timeline; the
// scene can be changed, and each loop of the film is drawn in the chosen one.
const BACKDROP = ["/sky", "/sun", "/earthshine"];
let scene = null; // name of the chosen scene
let factor = 1; // seconds of the run in a second of the film
const thumb = () => document.querySelector(".mantine-Paper-root .mantine-Slider-thumb");
const film = () => JSON.parse(told("film"));

const takeFilm = () => {
  factor = film().factor;
  const paper = () => thumb() && thumb().closest(".mantine-Paper-root");
  const button = () => paper() && paper().querySelector("button");
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
  run.now = () => (thumb() ? run.start + factor * +thumb().getAttribute("aria-valuenow") : run.start);
  run.playing = () => Boolean(button()) && button().querySelectorAll("path").length > 1;
  run.toggle = () => button() && button().click();
  run.seek = (t) => {
    const field = paper() && paper().querySelector("input");
    if (!field) return;
    set.call(field, ((t - run.start) / factor).toFixed(4));
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  run.begin = () => {
    const playing = run.playing(); // viser pauses when one seeks
    return () => playing && !run.playing() && setTimeout(run.toggle, 50);
  };
};

// Scenes --------------------------------------------------------------------------------------
const repainted = (message) => {
  const look = film().scenes[scene];
  const kind = message.type;
  if (kind === "EnableLightsMessage") return { ...message, enabled: !look.stars };
  if (kind === "ThemeConfigurationMessage") return { ...message, dark_mode: look.dark };
  if (kind === "EnvironmentMapMessage") {
    return { ...message, environment_intensity: look.reflected };
  }
  if (kind === "SetSceneNodeVisibilityMessage" && BACKDROP.includes(message.name)) {
    return { ...message, visible: look.stars };
  }
  return message;
};
const KEPT = ["EnableLightsMessage", "ThemeConfigurationMessage", "EnvironmentMapMessage"];
const kept = {}; // the last message of each kind, as it is in the file
const playFilm = (mutable) => {
  const queue = mutable.messageQueue;
  scene = scene || film().scene;
  const push = queue.push.bind(queue);
  queue.remora = push;
  queue.push = (...messages) => {
    for (const message of messages) {
      if (KEPT.includes(message.type)) kept[message.type] = message;
      push(repainted(message));
      if (BACKDROP.includes(message.name) && message.props) paintSky(push, message.name);
    }
    return queue.length;
  };
};
const paintSky = (push, name) =>
  push({
    type: "SetSceneNodeVisibilityMessage", owner: "", name, visible: film().scenes[scene].stars,
  });
const choose = (name) => {
  scene = name;
  const push = viser().messageQueue.remora;
  for (const kind of KEPT) if (kept[kind]) push(repainted(kept[kind]));
  for (const node of BACKDROP) paintSky(push, node);
  viser().requestRender();
};
const addScenes = () => {
  const list = made(bar, "select", "remora-scenes");
  list.title = "scene";
  for (const name of Object.keys(film().scenes)) {
    const option = made(list, "option", "", name);
    option.selected = name === scene;
  }
  list.addEventListener("pointerdown", (event) => event.stopPropagation());
  list.addEventListener("change", () => choose(list.value));
  bar.classList.add("remora-film");
};
if (told("film")) {
  let mutable; // viser's state: its queue is ours before the first message
  Object.defineProperty(window, "__viserMutable", {
    configurable: true,
    get: () => mutable,
    set: (value) => playFilm((mutable = value)),
  });
  document.head.appendChild(document.createElement("style")).textContent = `
.mantine-Paper-root:has(.mantine-Slider-thumb){position:fixed!important;left:0;bottom:0;height:50px;
  opacity:0;pointer-events:none;z-index:0}
.remora-film .remora-track{right:112px}
.remora-scenes{right:14px;top:12px;width:84px;height:26px;border:1px solid #8886;border-radius:5px;
  background:#fff;color:#23272e;font:inherit;padding:0 4px}
[data-mantine-color-scheme="dark"] .remora-scenes{background:#22262d;color:#dfe4ec}`;
}
